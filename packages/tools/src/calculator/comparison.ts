import type { BigNumber } from 'mathjs';
import type { Engine, Quantity } from './engine.js';

/** The result of each comparison for equal values. */
const comparisons = new Map([
  ['smaller', false],
  ['smallerEq', true],
  ['larger', false],
  ['largerEq', true],
  ['equal', true],
  ['unequal', false],
]);

/** Whether mathjs' name of an operator is that of a comparison. */
export const isComparison = (name: string): boolean => comparisons.has(name);

export const isTrueForEqual = (name: string): boolean => comparisons.get(name) === true;

/** Converts temperatures to kelvins: mathjs would compare degrees as if all scales had the same zero. */
export const comparable = ({ math }: Engine, quantity: Quantity): Quantity => {
  const isDegree =
    math.isUnit(quantity) &&
    quantity.units.length === 1 &&
    quantity.units.every(({ unit, power }) => power === 1 && /^deg[CFR]$/u.test(unit.name));
  return isDegree ? quantity.to('K') : quantity;
};

/** Whether two quantities with units are equal, up to the precision of unit factors, which have about 16 digits. */
export const isTie = (engine: Engine, quantities: readonly Quantity[]): boolean => {
  const [left, right] = quantities.map((it) =>
    engine.math.isUnit(it) ? baseValue(engine, it) : undefined,
  );
  if (left === undefined || right === undefined) return false;
  return left.minus(right).abs().lte(left.abs().times(1e-12));
};

/** The value, in the base unit if there is a unit. */
export const baseValue = ({ math }: Engine, quantity: Quantity): BigNumber | undefined => {
  const value: unknown = math.isUnit(quantity) ? quantity.value : quantity;
  if (typeof value === 'number') return math.bignumber(String(value));
  return math.isBigNumber(value) ? value : undefined;
};
