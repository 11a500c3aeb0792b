import { isMillraceError } from 'millrace';
import { messageOf, withoutSecrets } from 'millrace/values';
import { printable } from './printable.js';
import type { Theme } from './theme.js';
import { wrapFor } from './wrap.js';

/** Codes of errors that the user can fix: their technical message says how. */
const fixableByUser: readonly string[] = [
  'auth',
  'config',
  'conflict',
  'invalidRequest',
  'invalidResponse',
  'redirect',
  'store',
];

/** Describes an error, without keys: first for users, then for developers. With `debug`, includes the stack. */
export const describeError = (error: unknown, theme: Theme, debug = false): string => {
  const { colors, unicode } = theme;
  const technical = withoutSecrets(messageOf(error));
  const [code, forPeople] = isMillraceError(error)
    ? [error.code, error.userMessage]
    : ['unexpected', 'Something went wrong.'];
  const [headline, detail] = fixableByUser.includes(code)
    ? [technical, [code, ...sourceOf(error)].join(', ')]
    : [forPeople, `${[code, ...sourceOf(error)].join(', ')}: ${technical}`];
  const stack = debug && error instanceof Error ? [withoutSecrets(error.stack ?? '')] : [];
  return [
    wrapFor(`${colors.red(unicode ? '✗' : 'x')} ${printable(headline)}`, theme),
    wrapFor(colors.dim(`  ${printable(detail)}`), theme),
    ...stack.map((text) => colors.dim(`  ${printable(text)}`)),
  ].join('\n');
};

/** The status and the ID of a request, for which a provider's support asks. */
const sourceOf = (error: unknown): readonly string[] => {
  if (!isMillraceError(error)) return [];
  const { status, requestId } = error;
  return [
    ...(status === undefined ? [] : [`status ${String(status)}`]),
    ...(requestId === undefined ? [] : [`request ${requestId}`]),
  ];
};
