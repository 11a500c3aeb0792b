import type { BigNumber, Unit } from 'mathjs';
import type { Engine, Quantity } from './engine.js';

/**
 * Writes a result: an integer of up to 40 digits and a number of up to 20 exactly, others rounded to 14
 * significant digits. A unit is kept, and before it 8 digits are enough. Rounding never reaches the point.
 */
export const formatQuantity = ({ math }: Engine, quantity: Quantity): string =>
  math.isUnit(quantity)
    ? math
        .format(withShortUnit(quantity), formatMeasured)
        .replace(' / ', '/')
        .replace(/\bdeg(?=[CF]\b)/gu, '°')
    : formatNumber(quantity);

const formatNumber = (value: BigNumber): string =>
  write(!value.isInteger() && value.precision() <= 20 ? value : rounded(value, 14));

const formatMeasured = (value: BigNumber): string => write(rounded(value, 8));

const write = (value: BigNumber): string =>
  value.e >= 0 && value.e < exactDigits ? value.toFixed() : value.toString();

/** From so many digits before the point on, a number is written with an exponent. */
const exactDigits = 40;

/** Zeros before the point that come of rounding would look exact, so there two decimals are kept. */
const rounded = (value: BigNumber, digits: number): BigNumber => {
  if (value.e >= exactDigits) return value.toSignificantDigits(digits);
  return value.isInteger() ? value : value.toSignificantDigits(Math.max(digits, value.e + 3));
};

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
