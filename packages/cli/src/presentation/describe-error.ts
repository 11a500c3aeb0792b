import { isMillraceError } from '@millrace/core';
import { printable } from './printable.js';
import type { Theme } from './theme.js';

/** What whoever runs the command can put right: there the technical words say how. */
const own: readonly string[] = [
  'auth',
  'config',
  'conflict',
  'invalidRequest',
  'invalidResponse',
  'redirect',
  'store',
];

/** Says what went wrong: for people first, then for those who mend it. The stack is for debugging only. */
export const describeError = (
  error: unknown,
  { colors, unicode }: Pick<Theme, 'colors' | 'unicode'>,
  debug = false,
): string => {
  const technical = error instanceof Error ? error.message : String(error);
  const [code, forPeople] = isMillraceError(error)
    ? [error.code, error.userMessage]
    : ['unexpected', 'Something went wrong.'];
  const [headline, detail] = own.includes(code)
    ? [technical, code]
    : [forPeople, `${code}: ${technical}`];
  const stack = debug && error instanceof Error ? [error.stack ?? ''] : [];
  return [
    `${colors.red(unicode ? '✗' : 'x')} ${printable(headline)}`,
    ...[detail, ...stack].map((text) => colors.dim(`  ${printable(text)}`)),
  ].join('\n');
};
