import {
  bracketed,
  combine,
  is,
  isWord,
  type Node,
  plus,
  type Reader,
  referenceTo,
  type Scope,
  times,
} from './node.js';

/** The readers of what a command acts upon. */
export interface Operands {
  readonly sum: Reader;
  readonly product: Reader;
  readonly power: Reader;
}

/** Reads `sqrt(…)` and `the square root of …`; the latter takes the next value alone. */
export const readFunction = (
  scope: Scope,
  at: number,
  name: string,
  read: Operands,
): Node | undefined => {
  if (name === 'twice') return doubled(read.power(scope, at + 1), 2);
  if (name === 'remainder') return readRemainder(scope, at + 1, read);
  if (is(scope, at + 1, 'open')) return readArguments(scope, at, name, read);
  const operand = read.power(scope, at + 1);
  return operand && combine(`${name}(${operand.text})`, 4, [operand], operand.next);
};

/** `the remainder of 17 divided by 5` */
const readRemainder = (scope: Scope, at: number, { power }: Operands): Node | undefined => {
  const left = power(scope, at);
  if (left === undefined) return undefined;
  const sign = left.next + (isWord(scope, left.next, 'is') ? 1 : 0);
  const right = is(scope, sign, 'operator', '/') ? power(scope, sign + 1) : undefined;
  return right && times(left, right, 'mod', right.next);
};

const readArguments = (scope: Scope, at: number, name: string, { sum }: Operands) => {
  const list = readList(scope, at + 2, sum);
  const last = list.at(-1);
  return last !== undefined && is(scope, last.next, 'close')
    ? called(name, list, last.next + 1)
    : undefined;
};

const called = (name: string, list: readonly Node[], next: number): Node =>
  combine(`${name}(${list.map(({ text }) => text).join(', ')})`, 4, list, next);

const doubled = (node: Node | undefined, factor: number): Node | undefined =>
  node && combine(`${factor} * ${bracketed(node, 3)}`, 2, [node], node.next);

/** Reads items that commas or `and` join. */
const readList = (scope: Scope, at: number, read: Reader): readonly Node[] => {
  const items: Node[] = [];
  let item = read(scope, at);
  while (item !== undefined) {
    items.push(item);
    const comma = item.next + (is(scope, item.next, 'comma') ? 1 : 0);
    const next = comma + (isWord(scope, comma, 'and', 'by', 'to') ? 1 : 0);
    item = next > item.next ? read(scope, next) : undefined;
  }
  return items;
};

/** Reads `the sum of 3, 4 and 5`. */
export const readGather = (
  scope: Scope,
  at: number,
  sign: string,
  { sum }: Operands,
): Node | undefined => {
  const isCall = is(scope, at + 1, 'open') && scope.pieces[at]?.end === scope.pieces[at + 1]?.start;
  const items = readList(scope, at + (isCall ? 2 : 1), sum);
  const last = items.at(-1);
  if (last === undefined || items.length < 2) return undefined;
  return gathered(items, sign, last.next + (isCall && is(scope, last.next, 'close') ? 1 : 0));
};

const gathered = (items: readonly Node[], sign: string, next: number): Node => {
  const joined = (operator: string, first: 1 | 2, later: 2 | 3): string =>
    items.map((item, index) => bracketed(item, index === 0 ? first : later)).join(operator);
  switch (sign) {
    case '+':
    case '-':
      return combine(joined(` ${sign} `, 1, 2), 1, items, next);
    case '*':
    case '/':
      return combine(joined(` ${sign} `, 2, 3), 2, items, next);
    case 'mean':
      return combine(`(${joined(' + ', 1, 2)}) / ${items.length}`, 2, items, next);
    default:
      return called(sign, items, next);
  }
};

/** Reads `divide 100 by 7`, `double 4`, and `add 3`, which is to the result before. */
export const readVerb = (
  scope: Scope,
  at: number,
  verb: string,
  read: Operands,
): Node | undefined => {
  const joints = jointsOf.get(verb);
  if (joints === undefined) return changed(read.product(scope, at + 1), verb);
  const start = at + (isWord(scope, at + 1, 'up', 'together') ? 2 : 1);
  if (isWord(scope, start, 'by')) {
    const by = read.sum(scope, start + 1);
    return by && acted(verb, by, referenceTo(scope, at), by.next);
  }
  return verb === '+'
    ? readAddition(scope, start, read)
    : readAction(scope, start, verb, joints, read);
};

/** Words between what a verb takes and what it acts upon. */
const jointsOf = new Map([
  ['/', ['by', 'between', 'among', 'into', 'with']],
  ['*', ['by', 'with', 'and']],
  ['+', ['to']],
  ['-', ['from', 'off']],
  ['increase', ['by']],
  ['decrease', ['by']],
]);

/** Verbs that name what they act upon first: `divide 100 by 7`. */
const takesFirst = new Set(['/', '*', 'increase', 'decrease']);

const readAddition = (scope: Scope, at: number, { product, sum }: Operands): Node | undefined => {
  const items = readList(scope, at, product);
  const [first] = items;
  const last = items.at(-1);
  if (first === undefined || last === undefined) return undefined;
  if (items.length === 1) return plus(referenceTo(scope, at), first, '+', first.next);
  if (!isWord(scope, first.next, 'to')) return gathered(items, '+', last.next);
  const upon = sum(scope, first.next + 1);
  return upon && plus(upon, first, '+', upon.next);
};

const readAction = (
  scope: Scope,
  at: number,
  verb: string,
  joints: readonly string[],
  { sum }: Operands,
): Node | undefined => {
  const first = sum(scope, at);
  if (first === undefined) return undefined;
  const isFirst = takesFirst.has(verb);
  if (!isWord(scope, first.next, ...joints)) {
    if (!isFirst) return acted(verb, first, referenceTo(scope, at), first.next);
    return first.steps > 0 ? first : undefined;
  }
  const other = sum(scope, first.next + 1);
  if (other === undefined) return undefined;
  return isFirst ? acted(verb, other, first, other.next) : acted(verb, first, other, other.next);
};

const acted = (verb: string, by: Node, upon: Node, next: number): Node => {
  switch (verb) {
    case '+':
    case 'increase':
      return plus(upon, by, '+', next);
    case '-':
    case 'decrease':
      return plus(upon, by, '-', next);
    default:
      return times(upon, by, verb, next);
  }
};

const changed = (node: Node | undefined, verb: string): Node | undefined => {
  if (node === undefined) return undefined;
  switch (verb) {
    case 'double':
      return doubled(node, 2);
    case 'triple':
      return doubled(node, 3);
    case 'halve':
      return combine(`${bracketed(node, 2)} / 2`, 2, [node], node.next);
    default:
      return combine(`${bracketed(node, 4)}^${verb === 'square' ? 2 : 3}`, 3, [node], node.next);
  }
};
