import type { BigNumber } from 'mathjs';
import { baseValue, comparable, isComparison, isTie, isTrueForEqual } from './comparison.js';
import type { Engine, Quantity } from './engine.js';
import { formatQuantity } from './format-quantity.js';

const entries = <Value>(names: string, value: Value): readonly (readonly [string, Value])[] =>
  names.split(' ').map((name) => [name, value]);

/**
 * Functions that an expression may call, each with the maximum magnitude of its arguments: beyond it, mathjs would take
 * very long, or return meaningless digits.
 */
const functions: ReadonlyMap<string, number> = new Map([
  ...entries('abs sign round floor ceil fix min max sum mean median variance std', Infinity),
  ...entries('sqrt cbrt nthRoot square cube pow exp log log2 log10 hypot', Infinity),
  ...entries('sin cos tan asin acos atan', 1e15),
  ...entries('mod gcd lcm', 1e60),
  ...entries('combinations permutations', 1_000),
  ...entries('factorial', 450),
]);

const functionAliases = new Map([
  ['ln', 'log'],
  ['average', 'mean'],
  ['avg', 'mean'],
  ['stdev', 'std'],
  ['nthroot', 'nthRoot'],
]);

export const functionNames: readonly string[] = [...functions.keys()];

export const resolveFunction = (name: string): string | undefined => {
  const lower = name.toLowerCase();
  return [name, functionAliases.get(lower), lower].find(
    (candidate) => candidate !== undefined && functions.has(candidate),
  );
};

/** Operators by mathjs' names of their functions. */
const operators: ReadonlyMap<string, string> = new Map([
  ['add', '+'],
  ['subtract', '-'],
  ['multiply', '*'],
  ['divide', '/'],
  ['pow', '^'],
  ['mod', 'mod'],
  ['to', 'to'],
  ['unaryMinus', '-'],
  ['unaryPlus', '+'],
  ['factorial', '!'],
  ['smaller', '<'],
  ['smallerEq', '<='],
  ['larger', '>'],
  ['largerEq', '>='],
  ['equal', '=='],
  ['unequal', '!='],
]);

export const isOperator = (name: string): boolean => operators.has(name);

/** Calls a function or operator of mathjs. Throws an error that explains why there is no result. */
export const operate = (
  engine: Engine,
  name: string,
  args: readonly Quantity[],
): Quantity | boolean => {
  const largest = functions.get(name) ?? Infinity;
  if (args.some((it) => magnitude(engine, it)?.gt(largest) === true)) {
    throw new Error(`${formatCall(engine, name, args)}: that argument is too large for '${name}'.`);
  }
  const values = isComparison(name) ? args.map((it) => comparable(engine, it)) : args;
  const result = withoutRoundingError(
    engine,
    name,
    values,
    toQuantity(engine, call(engine, name, values)),
  );
  if (typeof result === 'boolean') return isTie(engine, values) ? isTrueForEqual(name) : result;
  if (result !== undefined && hasFiniteValue(engine, result)) return result;
  throw new Error(`${formatCall(engine, name, args)}: ${noResult(engine, name, result)}.`);
};

const call = (engine: Engine, name: string, args: readonly Quantity[]): unknown => {
  if (isCheap(engine, name, args)) engine.keepAllDigits();
  try {
    const operation: unknown = Reflect.get(engine.math, name);
    return typeof operation === 'function' ? Reflect.apply(operation, undefined, args) : undefined;
  } catch (cause) {
    throw new Error(`${formatCall(engine, name, args)}: ${reasonOf(engine, args, cause)}.`, {
      cause,
    });
  } finally {
    engine.reset();
  }
};

/** Whether an operation can be computed exactly in a short time: `2^300 + 1 - 2^300` is 1. */
const isCheap = ({ math }: Engine, name: string, args: readonly Quantity[]): boolean => {
  if (name !== 'pow')
    return ['add', 'subtract', 'multiply', 'sum', 'square', 'cube'].includes(name);
  const exponent = args[1];
  return math.isBigNumber(exponent) && exponent.isInteger() && exponent.gte(0) && exponent.lt(1e4);
};

/** `1/3 * 3 - 1` is 0, not a rounding error. */
const withoutRoundingError = (
  { math }: Engine,
  name: string,
  args: readonly Quantity[],
  result: Quantity | boolean | undefined,
): Quantity | boolean | undefined => {
  const isLeftover =
    ['add', 'subtract'].includes(name) &&
    math.isBigNumber(result) &&
    result.e < -15 &&
    args.some((it) => math.isBigNumber(it) && it.precision() > 60 && it.e - result.e > 50);
  return isLeftover ? math.bignumber(0) : result;
};

const toQuantity = ({ math }: Engine, result: unknown): Quantity | boolean | undefined => {
  if (math.isUnit(result)) {
    const isPlain = result.units.length > 0 && result.dimensions.every((power) => power === 0);
    return isPlain ? math.bignumber(result.value) : result;
  }
  if (typeof result === 'number') return math.bignumber(result);
  return math.isBigNumber(result) || typeof result === 'boolean' ? result : undefined;
};

/** The absolute value, in the base unit if there is a unit. */
const magnitude = (engine: Engine, quantity: Quantity): BigNumber | undefined =>
  baseValue(engine, quantity)?.abs();

const hasFiniteValue = (engine: Engine, quantity: Quantity): boolean =>
  magnitude(engine, quantity)?.isFinite() !== false;

const noResult = (engine: Engine, name: string, result: Quantity | undefined): string => {
  if (result === undefined || magnitude(engine, result)?.isNaN() === true) {
    return 'the result is not a real number';
  }
  return name === 'divide'
    ? 'division by zero, or too large'
    : 'the result is infinite or too large';
};

const reasonOf = ({ math }: Engine, args: readonly Quantity[], cause: unknown): string => {
  const message = cause instanceof Error ? cause.message : '';
  if (message.includes('Units do not match')) return 'the units do not measure the same thing';
  if (message.includes('Too few arguments')) return 'an argument is missing';
  if (message.includes('Too many arguments')) {
    return 'there are too many arguments; write numbers without thousands separators';
  }
  return args.some((it) => math.isUnit(it))
    ? 'the units do not fit this operation, or a value lacks its unit'
    : 'the values do not fit this operation';
};

const formatCall = (engine: Engine, name: string, args: readonly Quantity[]): string => {
  const values = args.map((it) => formatQuantity(engine, it).slice(0, 60));
  const sign = operators.get(name);
  if (sign === undefined || values.length > 2) return `${name}(${values.join(', ')})`;
  if (values.length === 2) return values.join(` ${sign} `);
  return name === 'factorial' ? `${values.join('')}!` : `${sign}${values.join('')}`;
};
