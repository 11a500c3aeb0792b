import type { BigNumber } from 'mathjs';
import type { Engine, Quantity } from './engine.js';

/** What each comparison says of equals. */
const comparisons = new Map([
  ['smaller', false],
  ['smallerEq', true],
  ['larger', false],
  ['largerEq', true],
  ['equal', true],
  ['unequal', false],
]);

/** Tells whether an operator, by mathjs' name, compares. */
export const isComparison = (name: string): boolean => comparisons.has(name);

/** What a comparison says of two that are equal. */
export const holdsOfEquals = (name: string): boolean => comparisons.get(name) === true;

/** Gives a temperature in kelvins: mathjs would compare degrees as if all scales had one zero. */
export const comparable = ({ math }: Engine, quantity: Quantity): Quantity => {
  const isDegree =
    math.isUnit(quantity) &&
    quantity.units.length === 1 &&
    quantity.units.every(({ unit, power }) => power === 1 && /^deg[CFR]$/u.test(unit.name));
  return isDegree ? quantity.to('K') : quantity;
};

/** Factors of units have some 16 digits, so that two of a unit are equal where so many are. */
export const isTie = (engine: Engine, quantities: readonly Quantity[]): boolean => {
  const [left, right] = quantities.map((it) =>
    engine.math.isUnit(it) ? baseValue(engine, it) : undefined,
  );
  if (left === undefined || right === undefined) return false;
  return left.minus(right).abs().lte(left.abs().times(1e-12));
};

/** The value, in the base unit where there is a unit. */
export const baseValue = ({ math }: Engine, quantity: Quantity): BigNumber | undefined => {
  const value: unknown = math.isUnit(quantity) ? quantity.value : quantity;
  if (typeof value === 'number') return math.bignumber(String(value));
  return math.isBigNumber(value) ? value : undefined;
};
