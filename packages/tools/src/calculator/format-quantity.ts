import type { BigNumber, Unit } from 'mathjs';
import type { Engine, Quantity } from './engine.js';

/**
 * Formats a result. Integers of up to 40 digits and other numbers of up to 20 are exact; others are rounded to 14
 * significant digits, or to 8 with a unit, which is kept. Digits before the decimal point are never rounded.
 */
export const formatQuantity = ({ math }: Engine, quantity: Quantity): string =>
  math.isUnit(quantity)
    ? math
        .format(withShortUnit(quantity), formatMeasured)
        .replace(' / ', '/')
        .replace(/\bdeg(?=[CF]\b)/gu, '°')
    : formatNumber(quantity);

const formatNumber = (value: BigNumber): string =>
  write(!value.isInteger() && value.precision() <= 20 ? value : round(value, 14));

const formatMeasured = (value: BigNumber): string => write(round(value, 8));

const write = (value: BigNumber): string =>
  value.e >= 0 && value.e < exactDigits ? value.toFixed() : value.toString();

/** Numbers with more digits before the decimal point are formatted with an exponent. */
const exactDigits = 40;

/** Keeps two decimals, because zeros from rounding before the decimal point would look exact. */
const round = (value: BigNumber, digits: number): BigNumber => {
  if (value.e >= exactDigits) return value.toSignificantDigits(digits);
  return value.isInteger() ? value : value.toSignificantDigits(Math.max(digits, value.e + 3));
};

/**
 * Keeps the units of the expression, such as `km/h` or `m^3`, which mathjs would convert to its preferred units, such
 * as m/s and kL. It only lets mathjs simplify products: `kg m / s^2` is N.
 */
const withShortUnit = (unit: Unit): Unit => {
  const merged = unit.clone();
  merged.units = mergeComponents(unit);
  const [first, second, third] = merged.units.map(({ power }) => power);
  const isProduct =
    third !== undefined || (first !== undefined && second !== undefined && first * second > 0);
  if (!isProduct) merged.skipAutomaticSimplification = true;
  return merged;
};

/** `km h / h` is `km`. */
const mergeComponents = ({ units }: Unit): Unit['units'] => {
  const merged = new Map<string, Unit['units'][number]>();
  for (const component of units) {
    const name = `${JSON.stringify(component.prefix)} ${component.unit.name}`;
    const power = (merged.get(name)?.power ?? 0) + component.power;
    merged.set(name, { ...component, power });
  }
  return [...merged.values()].filter(({ power }) => power !== 0);
};
