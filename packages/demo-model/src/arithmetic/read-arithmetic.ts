import { readRest, readSum } from './grammar.js';
import {
  bracketed,
  combine,
  is,
  isWord,
  type Node,
  type Reader,
  referenceTo,
  type Scope,
} from './node.js';
import { readUnit } from './read-unit.js';

/** Reads the longest arithmetic that begins at the first piece of a scope: a calculation, a comparison, a conversion. */
export const readArithmetic = (scope: Scope): Node | undefined => {
  if (is(scope, 0, 'howMany')) return readHowMany(scope, 0);
  if (is(scope, 0, 'percentOf')) return readPercentOf(scope, 0);
  const node = readLeading(scope) ?? readComparison(scope, 0);
  return node && (readConversion(scope, node) ?? readShare(scope, node) ?? node);
};

/** `how many seconds are there in 3 days` */
const readHowMany: Reader = (scope, at) => {
  const unit = readUnit(scope, at + 1);
  if (unit === undefined) return undefined;
  let next = unit.next;
  while (isBetween(scope, next)) next += 1;
  const quantity = readSum(scope, next);
  return quantity?.unit === true ? converted(quantity, unit.text, quantity.next) : undefined;
};

const isBetween = (scope: Scope, at: number): boolean =>
  isWord(scope, at, ...between) || is(scope, at, 'reference') || is(scope, at, 'compare', '==');

const between = 'is are was does do there in make makes fit into go to per'.split(' ');

/** `what percent of 80 is 20` */
const readPercentOf: Reader = (scope, at) => {
  const whole = readSum(scope, at + 1);
  if (whole === undefined || !isWord(scope, whole.next, 'is', 'are')) return undefined;
  const part = readSum(scope, whole.next + 1);
  return part && percentage(part, whole, part.next);
};

/** `20 is what percent of 80`, `20 as a percentage of 80` */
const readShare = (scope: Scope, part: Node): Node | undefined => {
  const at = part.next + (isWord(scope, part.next, 'is', 'are') ? 1 : 0);
  if (!is(scope, at, 'percentOf') && !is(scope, at, 'percentageOf')) return undefined;
  const whole = readSum(scope, at + 1);
  return whole && percentage(part, whole, whole.next);
};

const percentage = (part: Node, whole: Node, next: number): Node =>
  combine(`${bracketed(part, 2)} / ${bracketed(whole, 3)} * 100`, 2, [part, whole], next);

/** `5 miles to km`, `5 miles is how many km` */
const readConversion = (scope: Scope, node: Node): Node | undefined => {
  if (!node.unit) return undefined;
  const isAsked = isWord(scope, node.next, 'is', 'are') && is(scope, node.next + 1, 'howMany');
  const at = node.next + (isWord(scope, node.next, 'expressed', 'weigh', 'converted') ? 1 : 0);
  if (!isAsked && !isWord(scope, at, 'to', 'in', 'into', 'as')) return undefined;
  const unit = readUnit(scope, isAsked ? node.next + 2 : at + 1);
  return unit && converted(node, unit.text, unit.next);
};

const converted = (node: Node, unit: string, next: number): Node =>
  combine(`${bracketed(node, 2)} to ${unit}`, 0, [node], next);

/** `times two`, `plus 3`: of the result before */
const readLeading = (scope: Scope): Node | undefined => {
  const isSign = is(scope, 0, 'operator') && !is(scope, 0, 'operator', '-');
  if (!scope.leads || (!isSign && !is(scope, 0, 'suffix'))) return undefined;
  const node = readRest(scope, referenceTo(scope, 0));
  return node !== undefined && node.next > 0 ? node : undefined;
};

/** `7 * 8 > 50`; `more than` compares only where the text asks whether it is so. */
const readComparison: Reader = (scope, at) => {
  const left = readSum(scope, at);
  if (left === undefined || !is(scope, left.next, 'compare')) return left;
  const sign = scope.pieces[left.next];
  const isSpelled = /\p{L}/u.test(scope.text.charAt(sign?.start ?? 0));
  const right = isSpelled && !scope.whether ? undefined : readSum(scope, left.next + 1);
  if (right === undefined) return left;
  return combine(`${left.text} ${sign?.text ?? ''} ${right.text}`, 0, [left, right], right.next);
};
