import type { ConstantNode, MathNode } from 'mathjs';
import type { Engine, Quantity } from './engine.js';
import { strayComma } from './notation.js';
import { functionNamed, functionNames, isOperator, operate } from './operations.js';
import { valueNamed } from './value-named.js';

/**
 * Evaluates an expression in mathjs' notation. mathjs only parses it; this walks the tree, and calls nothing
 * that the lists of names here and in `operations` do not hold. Throws a sentence that says what to change.
 */
export const evaluate = (engine: Engine, notation: string): Quantity | boolean => {
  engine.reset();
  if (notation === '') throw new Error(`The expression is empty. ${format}`);
  const result = walk(engine, parse(engine, notation));
  if (engine.math.isUnit(result) && hasNoValue(result)) {
    throw new Error(`'${notation}' is only a unit: say how much of it.`);
  }
  return result;
};

const hasNoValue = ({ value }: { readonly value: unknown }): boolean => value === null;

const deepest = 60;

const parse = ({ math }: Engine, notation: string): MathNode => {
  if ((notation.match(/[([{]/gu)?.length ?? 0) > deepest) {
    throw new Error(`The expression has more than ${deepest} brackets. Split it up.`);
  }
  const comma = strayComma(notation);
  if (comma !== undefined) {
    throw new Error(
      `The comma in '${comma.slice(0, 60)}' can be read in two ways. Write decimals with a point, 1.5, and thousands ` +
        'without a separator, 1500.',
    );
  }
  try {
    return math.parse(notation);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'it is no expression';
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
  if (math.isSymbolNode(node)) return valueNamed(engine, node.name);
  if (math.isFunctionNode(node) && math.isSymbolNode(node.fn)) {
    return calledFunction(engine, node.fn.name, node.args);
  }
  if (math.isOperatorNode(node) && isOperator(node.fn)) {
    return operation(engine, node.fn, node.args, node.implicit);
  }
  throw new Error(
    `There may be numbers, units, operators and functions, but no variables, lists, texts or several steps. ${format}`,
  );
};

const quantity = (engine: Engine, node: MathNode): Quantity => asQuantity(walk(engine, node));

const asQuantity = (value: Quantity | boolean): Quantity => {
  if (typeof value !== 'boolean') return value;
  throw new Error('A comparison has no value to go on with: compare last, and once.');
};

const numberOf = ({ math }: Engine, node: ConstantNode): Quantity => {
  const value: unknown = node.value;
  if (math.isBigNumber(value) && value.isFinite()) return value;
  throw new Error(
    `'${node.toString().slice(0, 60)}' is no number that can be computed with. ${format}`,
  );
};

const calledFunction = (
  engine: Engine,
  name: string,
  args: readonly MathNode[],
): Quantity | boolean => {
  const known = functionNamed(name);
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
    if (implicit) return juxtaposed(engine, left, right);
    if (
      (name === 'add' || name === 'subtract') &&
      isPercentage(engine, right) &&
      !isPercentage(engine, left)
    ) {
      return changedByPercentage(engine, name, left, right);
    }
  }
  return operate(
    engine,
    name,
    args.map((arg) => quantity(engine, arg)),
  );
};

/** `200 + 5%` is 210, as on a pocket calculator. */
const changedByPercentage = (
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

/** What stands side by side is a product, `5 km`, or a sum in parts, `5 feet 3 inches`. */
const juxtaposed = (engine: Engine, left: MathNode, right: MathNode): Quantity | boolean => {
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
