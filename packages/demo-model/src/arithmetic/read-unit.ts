import { is, isWord, type Scope } from './node.js';

/** Reads `miles`, `miles per hour`, `m²`, and `in` where it can only be inches, if units are allowed. */
export const readUnit = (
  scope: Scope,
  at: number,
): { readonly text: string; readonly next: number } | undefined => {
  if (scope.options.units !== true) return undefined;
  const isInches = isWord(scope, at, 'in') && isWord(scope, at + 1, 'to', 'in', 'into', 'as');
  if (isInches) return { text: 'inches', next: at + 1 };
  if (!is(scope, at, 'unit')) return undefined;
  const [unit = '', sign = '', more = ''] = scope.pieces.slice(at, at + 3).map(({ text }) => text);
  const isRate = is(scope, at + 1, 'operator', '/') || isWord(scope, at + 1, 'per');
  if (isRate && is(scope, at + 2, 'unit')) return { text: `${unit}/${more}`, next: at + 3 };
  const isPower = is(scope, at + 1, 'operator', '^') && is(scope, at + 2, 'number', '2', '3');
  if (isPower) return { text: `${unit}^${more}`, next: at + 3 };
  return is(scope, at + 1, 'suffix', '^2', '^3')
    ? { text: `${unit}${sign}`, next: at + 2 }
    : { text: unit, next: at + 1 };
};
