import { createRequire } from 'node:module';
import { MillraceError } from 'millrace';
import type { BigNumber, MathJsInstance, Unit, UnitDefinition } from 'mathjs';
import type Bundle from 'mathjs/lib/browser/math.js';

/** A number, with or without a unit. */
export type Quantity = BigNumber | Unit;

/** mathjs with decimal numbers and a few additional units. */
export interface Engine {
  readonly math: MathJsInstance;
  /** The names of all units, without prefixes. */
  readonly unitNames: readonly string[];
  /** Must be called before each calculation, because errors in the decimal library leave its precision changed. */
  reset(): void;
  /** Keeps all digits until the next reset; for cheap operations only. */
  keepAllDigits(): void;
}

export const loadEngine = async (): Promise<Engine> => {
  const mathjs = await loadBundle();
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
    reset: () => math.BigNumber.set({ precision, maxE: maxExponent, minE: -maxExponent }),
    keepAllDigits: () => math.BigNumber.set({ precision: maxExponent + precision }),
  };
};

/**
 * Loads the bundle of mathjs, because loading the 900 files of the package's entry takes twenty times as long. An import
 * searches its 650 kB for exported names first, which takes as long as running it. A bundled program has only the import.
 */
const loadBundle = async (): Promise<typeof Bundle> => {
  try {
    const require = createRequire(import.meta.url);
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- `require` has no types.
    return require('mathjs/lib/browser/math.js') as typeof Bundle;
  } catch {
    const { default: bundle } = await import('mathjs/lib/browser/math.js').catch(
      (cause: unknown) => {
        throw new MillraceError('config', 'calculator() needs a parser: npm install mathjs', {
          cause,
        });
      },
    );
    return bundle;
  }
};

/** Significant digits of computations; results show far fewer. */
const precision = 64;

/** Numbers with a smaller relative difference are equal; such differences come from rounded roots. */
const tolerance = 1e-40;

/** Numbers with more digits become infinite, which bounds the work of any operation. */
const maxExponent = 1_000;

/** Prevents that mathjs displays, for example, every speed in the first of the added units of speed. */
const addUnits = (math: MathJsInstance): void => {
  const displayUnits = math.Unit.UNIT_SYSTEMS.auto;
  const before = new Set(Object.keys(displayUnits));
  math.createUnit(extraUnits);
  for (const key of Object.keys(displayUnits)) {
    if (!before.has(key)) Reflect.deleteProperty(displayUnits, key);
  }
};

const extraUnits: Record<string, string | UnitDefinition> = {
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
