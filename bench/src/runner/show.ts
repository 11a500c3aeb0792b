import { median } from '../median.js';
import { medianOf, type Outcome, ratiosOf } from './outcomes.js';

/** A number with three digits that say something, and no more than two decimals. */
export const shown = (value: number): string => {
  if (!Number.isFinite(value)) return 'n/a';
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
};

/** The median of ratios. */
export const shownRatio = (ratios: readonly number[]): string =>
  ratios.length === 0 ? 'n/a' : `${median(ratios).toFixed(2)}×`;

/** The least and the greatest of them. */
const shownRange = (ratios: readonly number[]): string =>
  ratios.length === 0 ? '' : `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;

/** The cells of one cost: its median, and the median and the range of its ratios to the floor. */
export const cellsOf = <T>(
  outcome: Outcome<T>,
  all: readonly Outcome<T>[],
  pick: (result: T) => number,
): readonly string[] => {
  const ratios = ratiosOf(outcome, all, pick);
  return [shown(medianOf(outcome, pick)), shownRatio(ratios), shownRange(ratios)];
};
