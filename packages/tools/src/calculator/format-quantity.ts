import type { BigNumber, Unit } from 'mathjs';
import type { Engine, Quantity } from './engine.js';

/** Writes a result: exactly where it has few digits, else rounded to 14 significant ones. A unit is kept. */
export const formatQuantity = ({ math }: Engine, quantity: Quantity): string =>
  math.isUnit(quantity)
    ? math.format(withShortUnit(quantity), formatNumber).replace(' / ', '/')
    : formatNumber(quantity);

const formatNumber = (value: BigNumber): string => {
  const number = isShort(value) ? value : value.toSignificantDigits(14);
  return number.isInteger() && number.e < 40 ? number.toFixed() : number.toString();
};

/** Up to 40 digits of an integer, or 20 of another number, are sure to be no leftovers of rounding. */
const isShort = (value: BigNumber): boolean =>
  value.isInteger() ? value.e < 40 : value.precision() <= 20;

/**
 * mathjs shows any unit in the one that it likes best: a speed in m/s as well as a volume in kL. This keeps
 * what was written, `km/h` or `m^3`, and leaves only products to mathjs: `kg m / s^2` is N.
 */
const withShortUnit = (unit: Unit): Unit => {
  const merged = unit.clone();
  merged.units = mergedComponents(unit);
  const [first, second, third] = merged.units.map(({ power }) => power);
  const isProduct =
    third !== undefined || (first !== undefined && second !== undefined && first * second > 0);
  if (!isProduct) merged.skipAutomaticSimplification = true;
  return merged;
};

/** `km h / h` is `km`. */
const mergedComponents = ({ units }: Unit): Unit['units'] => {
  const merged = new Map<string, Unit['units'][number]>();
  for (const component of units) {
    const name = `${JSON.stringify(component.prefix)} ${component.unit.name}`;
    const power = (merged.get(name)?.power ?? 0) + component.power;
    merged.set(name, { ...component, power });
  }
  return [...merged.values()].filter(({ power }) => power !== 0);
};
