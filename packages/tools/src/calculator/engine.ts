import type { BigNumber, MathJsInstance, Unit, UnitDefinition } from 'mathjs';

/** What a calculation works with: a plain number, or one of a unit. */
export type Quantity = BigNumber | Unit;

/** mathjs with decimal numbers, and a few units that it lacks. */
export interface Engine {
  readonly math: MathJsInstance;
  /** The names of all units, without prefixes. */
  readonly unitNames: readonly string[];
  /** To be called before each calculation: an error within the decimal library leaves its precision changed. */
  reset(): void;
  /** Until the next reset, operations keep all digits that a number may have: for cheap ones only. */
  keepAllDigits(): void;
}

/**
 * Loads mathjs. It is the bundle that is loaded, because the same code takes twenty times as long to come from
 * the 900 files of the package's entry.
 */
export const loadEngine = async (): Promise<Engine> => {
  const { default: mathjs } = await import('mathjs/lib/browser/math.js');
  const math = mathjs.create({
    number: 'BigNumber',
    precision,
    predictable: true,
    relTol: tolerance,
    absTol: tolerance,
  });
  addUnits(math);
  return {
    math,
    unitNames: Object.keys(math.Unit.UNITS),
    reset: () => math.BigNumber.set({ precision, maxE: largestExponent, minE: -largestExponent }),
    keepAllDigits: () => math.BigNumber.set({ precision: largestExponent + precision }),
  };
};

/** Significant digits that are computed; far fewer are shown. */
const precision = 64;

/** Numbers that differ by less, in relation to their size, are equal: what a rounded root leaves. */
const tolerance = 1e-40;

/** A number of more digits is infinite: this bounds the work that any one operation can make. */
const largestExponent = 1_000;

/** mathjs would from now on show every speed in the first unit of speed that it is given. */
const addUnits = (math: MathJsInstance): void => {
  const shownIn = math.Unit.UNIT_SYSTEMS.auto;
  const before = new Set(Object.keys(shownIn));
  math.createUnit(furtherUnits);
  for (const key of Object.keys(shownIn)) {
    if (!before.has(key)) Reflect.deleteProperty(shownIn, key);
  }
};

const furtherUnits: Record<string, string | UnitDefinition> = {
  metre: { definition: '1 m', prefixes: 'long', aliases: ['metres'] },
  mph: '1 mi/h',
  kph: { definition: '1 km/h', aliases: ['kmh'] },
  knot: { definition: '1852 m/h', aliases: ['knots'] },
  nauticalmile: { definition: '1852 m', aliases: ['nauticalmiles', 'nmi'] },
  lightyear: { definition: '9460730472580800 m', aliases: ['lightyears'] },
  calorie: { definition: '4.184 J', aliases: ['calories', 'cal'] },
  kilocalorie: { definition: '4184 J', aliases: ['kilocalories', 'kcal'] },
  tbsp: '1 tablespoon',
  tsp: '1 teaspoon',
  rpm: '1 cycle/minute',
};
