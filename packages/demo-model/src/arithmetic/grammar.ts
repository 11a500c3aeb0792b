import { type Operands, readFunction, readGather, readVerb } from './commands.js';
import {
  atom,
  bracketed,
  combine,
  fold,
  is,
  isWord,
  type Node,
  plus,
  type Reader,
  referenceTo,
  type Scope,
  times,
} from './node.js';
import { readUnit } from './read-unit.js';

/** Reads a sum, or whatever binds more tightly. */
export const readSum: Reader = (scope, at) =>
  fold(readProduct(scope, at), (left) => continueSum(scope, left));

/** Reads the rest of a sum, product or power that begins with a value: of the result before. */
export const readRest = (scope: Scope, value: Node): Node | undefined => {
  const power = continuePower(scope, value);
  const product = fold(power, (left) => continueProduct(scope, left));
  return fold(product, (left) => continueSum(scope, left));
};

const continueSum = (scope: Scope, left: Node): Node | undefined => {
  if (!is(scope, left.next, 'operator', '+', '-')) return undefined;
  const right = readProduct(scope, left.next + 1);
  return right && plus(left, right, is(scope, left.next, 'operator', '+') ? '+' : '-', right.next);
};

const readProduct: Reader = (scope, at) =>
  fold(readPower(scope, at), (left) => continueProduct(scope, left));

const continueProduct = (scope: Scope, left: Node): Node | undefined => {
  if (left.percent !== undefined) return continuePercent(scope, left);
  const { next } = left;
  const isSpelled = is(scope, next, 'operator', '*', '/', 'mod') || isPartOf(scope, left);
  if (!isSpelled && left.fraction !== true && !isMultiple(scope, left)) return undefined;
  const right = readPower(scope, isSpelled ? next + 1 : next);
  const sign = is(scope, next, 'operator') ? (scope.pieces[next]?.text ?? '') : '*';
  return right && times(left, right, sign, right.next);
};

/** `3/4 of 100` */
const isPartOf = (scope: Scope, { text, next }: Node): boolean =>
  isWord(scope, next, 'of') && /^\d+ \/ \d+$/u.test(text);

/** `2 pi`, `2 (3 + 4)`, `two dozen` */
const isMultiple = (scope: Scope, { level, steps, next }: Node): boolean =>
  level === 4 &&
  steps === 0 &&
  (is(scope, next, 'constant') || is(scope, next, 'open') || is(scope, next, 'dozen'));

/** `5% of 80`, `20% off 80`, `15% tip on 42.50`, `10% more than 50`, `5% * 80` */
const continuePercent = (scope: Scope, left: Node): Node | undefined => {
  const { next } = left;
  const kind = next + (isWord(scope, next, 'tip', 'discount', 'tax', 'vat', 'interest') ? 1 : 0);
  const isMore = !scope.whether && is(scope, kind, 'compare', '>');
  const isLess = isWord(scope, kind, 'off') || (!scope.whether && is(scope, kind, 'compare', '<'));
  const isPart = isWord(scope, kind, 'of', 'on') || is(scope, kind, 'operator', '*', '/');
  const whole = isMore || isLess || isPart ? readPower(scope, kind + 1) : undefined;
  if (whole === undefined) return undefined;
  if (!isPart) return plus(whole, left, isMore ? '+' : '-', whole.next);
  const sign = is(scope, kind, 'operator', '/') ? '/' : '*';
  return times(left, whole, sign, whole.next);
};

const readPower: Reader = (scope, at) => {
  const base = readSuffixed(scope, at);
  return base && continuePower(scope, base);
};

const continuePower = (scope: Scope, value: Node): Node => {
  const base = fold(value, (left) => suffixed(scope, left)) ?? value;
  const ordinal = readOrdinal(scope, base);
  if (ordinal !== undefined) return ordinal;
  if (!is(scope, base.next, 'operator', '^')) return base;
  const exponent = readPower(scope, base.next + 1);
  if (exponent === undefined) return base;
  const text = `${bracketed(base, 4)}^${bracketed(exponent, 4)}`;
  return combine(text, 3, [base, exponent], exponent.next);
};

/** `3 to the 4th` */
const readOrdinal = (scope: Scope, base: Node): Node | undefined => {
  const { next } = base;
  const isOrdinal = isWord(scope, next, 'to') && isWord(scope, next + 2, 'th', 'nd', 'rd', 'st');
  if (!isOrdinal || !is(scope, next + 1, 'number')) return undefined;
  const end = next + (is(scope, next + 3, 'operator', '^') ? 4 : 3);
  return combine(`${bracketed(base, 4)}^${scope.pieces[next + 1]?.text ?? ''}`, 3, [base], end);
};

/** A value with what stands behind it; quantities side by side (`6 feet 2 inches`) add up. */
const readSuffixed: Reader = (scope, at) => {
  const first = fold(readPrimary(scope, at), (left) => suffixed(scope, left));
  return fold(first, (left) => {
    const also = left.next + (isWord(scope, left.next, 'and') ? 1 : 0);
    if (!left.unit || !is(scope, also, 'number')) return undefined;
    const more = fold(readPrimary(scope, also), (it) => suffixed(scope, it));
    return more?.unit === true ? plus(left, more, '+', more.next) : undefined;
  });
};

/** `!`, `squared`, `%` or a unit behind a value */
const suffixed = (scope: Scope, node: Node): Node | undefined => {
  const { next } = node;
  if (is(scope, next, 'suffix')) {
    return combine(`${bracketed(node, 4)}${scope.pieces[next]?.text ?? ''}`, 3, [node], next + 1);
  }
  if (node.unit || node.percent !== undefined) return undefined;
  if (is(scope, next, 'percent')) return percentOf(node, scope.options.percent === true);
  const unit = readUnit(scope, next);
  if (unit === undefined) return undefined;
  return {
    ...node,
    text: `${bracketed(node, 4)} ${unit.text}`,
    level: 2,
    next: unit.next,
    unit: true,
  };
};

const percentOf = (node: Node, hasSign: boolean): Node => {
  const written: Pick<Node, 'text' | 'level'> = hasSign
    ? { text: `${bracketed(node, 4)}%`, level: 3 }
    : { text: `${bracketed(node, 3)} / 100`, level: 2 };
  return { ...node, ...written, next: node.next + 1, percent: bracketed(node, 3) };
};

const readPrimary: Reader = (scope, at) => {
  const { type, text } = scope.pieces[at] ?? { type: 'other', text: '' };
  if (type === 'number' || type === 'constant' || type === 'dozen') return atom(text, at + 1);
  if (type === 'fraction') return readFraction(text, at + 1);
  if (type === 'reference') return referenceTo(scope, at + 1);
  if (type === 'open') return readBracket(scope, at);
  if (type === 'operator' && text === '-') return readNegative(scope, at);
  if (type === 'function') return readFunction(scope, at, text, operands);
  if (type === 'gather') return readGather(scope, at, text, operands);
  return type === 'verb' ? readVerb(scope, at, text, operands) : undefined;
};

const readFraction = (text: string, next: number): Node => ({
  ...atom(text, next),
  level: text.includes('/') ? 2 : 4,
  fraction: true,
});

const readNegative: Reader = (scope, at) => {
  const node = readPower(scope, at + 1);
  return node && { ...node, text: `-${bracketed(node, 2)}`, level: node.level === 2 ? 2 : 3 };
};

const readBracket: Reader = (scope, at) => {
  const inside = readSum(scope, at + 1);
  return inside && is(scope, inside.next, 'close')
    ? { ...inside, next: inside.next + 1 }
    : undefined;
};

const operands: Operands = { sum: readSum, product: readProduct, power: readPower };
