import { isMillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
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

/** Describes an error: first for users, then for developers. With `debug`, includes the stack. */
export const describeError = (error: unknown, theme: Theme, debug = false): string => {
  const { colors, unicode } = theme;
  const technical = messageOf(error);
  const [code, forPeople] = isMillraceError(error)
    ? [error.code, error.userMessage]
    : ['unexpected', 'Something went wrong.'];
  const [headline, detail] = fixableByUser.includes(code)
    ? [technical, code]
    : [forPeople, `${code}: ${technical}`];
  const stack = debug && error instanceof Error ? [error.stack ?? ''] : [];
  return [
    wrapFor(`${colors.red(unicode ? '✗' : 'x')} ${printable(headline)}`, theme),
    wrapFor(colors.dim(`  ${printable(detail)}`), theme),
    ...stack.map((text) => colors.dim(`  ${printable(text)}`)),
  ].join('\n');
};
