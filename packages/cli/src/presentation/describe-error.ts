import { isMillraceError } from '@millrace/core';
import { printable } from './printable.js';
import type { Theme } from './theme.js';

/** Says what went wrong: for people first, then for those who mend it. The stack is for debugging only. */
export const describeError = (
  error: unknown,
  { colors, unicode }: Pick<Theme, 'colors' | 'unicode'>,
  debug = false,
): string => {
  const [forPeople, code] = isMillraceError(error)
    ? [error.userMessage, error.code]
    : ['Something went wrong.', 'unexpected'];
  const technical = error instanceof Error ? error.message : String(error);
  const stack = debug && error instanceof Error ? [error.stack ?? ''] : [];
  return [
    `${colors.red(unicode ? '✗' : 'x')} ${printable(forPeople)}`,
    ...[`${code}: ${technical}`, ...stack].map((text) => colors.dim(`  ${printable(text)}`)),
  ].join('\n');
};
