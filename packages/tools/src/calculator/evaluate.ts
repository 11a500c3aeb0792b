import type { ConstantNode, MathNode } from 'mathjs';
import type { Engine, Quantity } from './engine.js';
import { ambiguousComma } from './notation.js';
import { functionNames, isOperator, operate, resolveFunction } from './operations.js';
import { resolveName } from './resolve-name.js';

/**
 * Evaluates an expression in mathjs' notation. mathjs only parses it; this function walks the tree, and only calls
 * operations on the lists here and in `operations`. Throws an error that explains what to change.
 */
export const evaluate = (engine: Engine, notation: string): Quantity | boolean => {
  engine.reset();
  if (notation === '') throw new Error(`The expression is empty. ${format}`);
  const result = walk(engine, parse(engine, notation));
  if (engine.math.isUnit(result) && hasNoValue(result)) {
    throw new Error(`'${notation}' is only a unit: add a number.`);
  }
  return result;
};

const hasNoValue = ({ value }: { readonly value: unknown }): boolean => value === null;

const maxBrackets = 60;

const parse = ({ math }: Engine, notation: string): MathNode => {
  if ((notation.match(/[([{]/gu)?.length ?? 0) > maxBrackets) {
    throw new Error(`The expression has more than ${maxBrackets} brackets. Split it up.`);
  }
  const comma = ambiguousComma(notation);
  if (comma !== undefined) {
    throw new Error(
      `The comma in '${comma.slice(0, 60)}' is ambiguous. Write decimals with a point, 1.5, and thousands ` +
        'without a separator, 1500.',
    );
  }
  try {
    return math.parse(notation);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'it is not an expression';
    const hint = /\p{Sc}/u.test(notation)
      ? 'Exchange rates of currencies are not available.'
      : format;
    throw new Error(`Cannot read '${notation.slice(0, 100)}': ${reason}. ${hint}`, { cause });
  }
};

const format = `Write one expression such as '17.5% * 2349', 'sqrt(2) * pi' or '5 miles to km'.`;

const walk = (engine: Engine, node: MathNode): Quantity | boolean => {
  const { math } = engine;
  if (math.isParenthesisNode(node)) return walk(engine, node.content);
  if (math.isConstantNode(node)) return numberOf(engine, node);
  if (math.isSymbolNode(node)) return resolveName(engine, node.name);
  if (math.isFunctionNode(node) && math.isSymbolNode(node.fn)) {
    return callFunction(engine, node.fn.name, node.args);
  }
  if (math.isOperatorNode(node) && isOperator(node.fn)) {
    return operation(engine, node.fn, node.args, node.implicit);
  }
  throw new Error(
    `Use numbers, units, operators and functions, but no variables, lists, strings or several steps. ${format}`,
  );
};

const quantity = (engine: Engine, node: MathNode): Quantity => asQuantity(walk(engine, node));

const asQuantity = (value: Quantity | boolean): Quantity => {
  if (typeof value !== 'boolean') return value;
  throw new Error('A comparison cannot be part of a calculation: compare last, and only once.');
};

const numberOf = ({ math }: Engine, node: ConstantNode): Quantity => {
  const value: unknown = node.value;
  if (math.isBigNumber(value) && value.isFinite()) return value;
  throw new Error(`'${node.toString().slice(0, 60)}' is not a supported number. ${format}`);
};

const callFunction = (
  engine: Engine,
  name: string,
  args: readonly MathNode[],
): Quantity | boolean => {
  const known = resolveFunction(name);
  if (known === undefined) {
    throw new Error(`There is no function '${name}'. There are: ${functionNames.join(', ')}.`);
  }
  return operate(
    engine,
    known,
    args.map((arg) => quantity(engine, arg)),
  );
};

const operation = (
  engine: Engine,
  name: string,
  args: readonly MathNode[],
  implicit: boolean,
): Quantity | boolean => {
  const [left, right] = args;
  if (left !== undefined && right !== undefined) {
    if (implicit) return implicitOperation(engine, left, right);
    if (
      (name === 'add' || name === 'subtract') &&
      isPercentage(engine, right) &&
      !isPercentage(engine, left)
    ) {
      return applyPercentage(engine, name, left, right);
    }
  }
  return operate(
    engine,
    name,
    args.map((arg) => quantity(engine, arg)),
  );
};

/** `200 + 5%` is 210, as on a pocket calculator. */
const applyPercentage = (
  engine: Engine,
  name: string,
  left: MathNode,
  right: MathNode,
): Quantity | boolean => {
  const whole = quantity(engine, left);
  const part = product(engine, whole, quantity(engine, right));
  return operate(engine, name, [whole, part]);
};

const isPercentage = (engine: Engine, node: MathNode): boolean => {
  const { math } = engine;
  if (math.isParenthesisNode(node)) return isPercentage(engine, node.content);
  if (!math.isOperatorNode(node)) return false;
  const name: string = node.fn;
  const [left, right] = node.args;
  if (node.implicit) return math.isSymbolNode(right) && right.name === 'percent';
  return (
    ['add', 'subtract', 'unaryMinus'].includes(name) &&
    [left, right].every((it) => it === undefined || isPercentage(engine, it))
  );
};

/** Values without an operator are multiplied, as in `5 km`, or added, as in `5 feet 3 inches`. */
const implicitOperation = (engine: Engine, left: MathNode, right: MathNode): Quantity | boolean => {
  const { math } = engine;
  if (math.isConstantNode(right)) {
    const number = numberOf(engine, right).toString();
    throw new Error(`There is no operator between '${left.toString()}' and '${number}'. ${format}`);
  }
  const [before, count] = math.isOperatorNode(left) && left.implicit ? left.args : [];
  if (before !== undefined && math.isConstantNode(count)) {
    const part = product(engine, quantity(engine, count), quantity(engine, right));
    return operate(engine, 'add', [quantity(engine, before), part]);
  }
  return product(engine, quantity(engine, left), quantity(engine, right));
};

const product = (engine: Engine, left: Quantity, right: Quantity): Quantity =>
  asQuantity(operate(engine, 'multiply', [left, right]));
