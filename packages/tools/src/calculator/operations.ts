import type { BigNumber } from 'mathjs';
import { baseValue, comparable, holdsOfEquals, isComparison, isTie } from './comparison.js';
import type { Engine, Quantity } from './engine.js';
import { formatQuantity } from './format-quantity.js';

const entries = <Value>(names: string, value: Value): readonly (readonly [string, Value])[] =>
  names.split(' ').map((name) => [name, value]);

/**
 * The functions that an expression may call, each with the largest magnitude of its arguments: beyond it
 * mathjs would count for very long, or give digits that mean nothing.
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

/** What an expression may call, as it is told to a model. */
export const functionNames: readonly string[] = [...functions.keys()];

/** The function that an expression means by a name, if it may be called. */
export const functionNamed = (name: string): string | undefined => {
  const lower = name.toLowerCase();
  return [name, functionAliases.get(lower), lower].find(
    (candidate) => candidate !== undefined && functions.has(candidate),
  );
};

/** The operators of an expression, by mathjs' name for what they do. */
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

/** Tells whether an operator may stand in an expression. */
export const isOperator = (name: string): boolean => operators.has(name);

/** Calls a function or an operator of mathjs, or throws a sentence that says why it has no result. */
export const operate = (
  engine: Engine,
  name: string,
  args: readonly Quantity[],
): Quantity | boolean => {
  const largest = functions.get(name) ?? Infinity;
  if (args.some((it) => magnitude(engine, it)?.gt(largest) === true)) {
    throw new Error(`${shown(engine, name, args)}: that argument is too large for '${name}'.`);
  }
  const values = isComparison(name) ? args.map((it) => comparable(engine, it)) : args;
  const result = settled(engine, name, values, toQuantity(engine, call(engine, name, values)));
  if (typeof result === 'boolean') return isTie(engine, values) ? holdsOfEquals(name) : result;
  if (result !== undefined && hasFiniteValue(engine, result)) return result;
  throw new Error(`${shown(engine, name, args)}: ${noResult(engine, name, result)}.`);
};

const call = (engine: Engine, name: string, args: readonly Quantity[]): unknown => {
  if (isCheap(engine, name, args)) engine.keepAllDigits();
  try {
    const operation: unknown = Reflect.get(engine.math, name);
    return typeof operation === 'function' ? Reflect.apply(operation, undefined, args) : undefined;
  } catch (cause) {
    throw new Error(`${shown(engine, name, args)}: ${reasonOf(engine, args, cause)}.`, { cause });
  } finally {
    engine.reset();
  }
};

/** What can be computed to the last digit without taking long: `2^300 + 1 - 2^300` is 1. */
const isCheap = ({ math }: Engine, name: string, args: readonly Quantity[]): boolean => {
  if (name !== 'pow')
    return ['add', 'subtract', 'multiply', 'sum', 'square', 'cube'].includes(name);
  const exponent = args[1];
  return math.isBigNumber(exponent) && exponent.isInteger() && exponent.gte(0) && exponent.lt(1e4);
};

/** `1/3 * 3 - 1` is 0, and not what rounding has left of it. */
const settled = (
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

/** The absolute value, in the base unit where there is a unit. */
const magnitude = (engine: Engine, quantity: Quantity): BigNumber | undefined =>
  baseValue(engine, quantity)?.abs();

const hasFiniteValue = (engine: Engine, quantity: Quantity): boolean =>
  magnitude(engine, quantity)?.isFinite() !== false;

const noResult = (engine: Engine, name: string, result: Quantity | undefined): string => {
  if (result === undefined || magnitude(engine, result)?.isNaN() === true) {
    return 'this has no result among the real numbers';
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
    return 'these are too many arguments; write numbers without thousands separators';
  }
  return args.some((it) => math.isUnit(it))
    ? 'this cannot be computed with these units, or one of the values lacks its unit'
    : 'this cannot be computed with such values';
};

const shown = (engine: Engine, name: string, args: readonly Quantity[]): string => {
  const values = args.map((it) => formatQuantity(engine, it).slice(0, 60));
  const sign = operators.get(name);
  if (sign === undefined || values.length > 2) return `${name}(${values.join(', ')})`;
  if (values.length === 2) return values.join(` ${sign} `);
  return name === 'factorial' ? `${values.join('')}!` : `${sign}${values.join('')}`;
};
