import type { Slot } from './read-slots.js';
import type { Value } from './value.js';
import { wordsOf } from './words.js';

/** The lines that a text names by their numbers. */
interface NamedLines {
  readonly from: number;
  readonly to: number;
  readonly start: number;
  readonly end: number;
}

/** Fills the parameters of a range, such as `fromLine` and `lines`, from `lines 10 to 14`. */
export const lineRange = (slots: readonly Slot[], text: string): ReadonlyMap<Slot, Value> => {
  const named = namedLines(text);
  const first = slots.find((slot) => isNumber(slot) && nameHas(slot, firsts));
  const last = slots.find((slot) => isNumber(slot) && nameHas(slot, lasts));
  const count = slots.find((slot) => isNumber(slot) && slot !== first && nameHas(slot, counts));
  const other = last ?? count;
  if (named === undefined || first === undefined || other === undefined) return new Map();
  const { from, to, ...span } = named;
  const rest = other === last ? to : to - from + 1;
  return new Map([
    [first, { ...span, value: from, telling: false }],
    [other, { ...span, value: rest, telling: false }],
  ]);
};

/** A parameter and the values that were found for it. */
interface Filled {
  readonly slot: Slot;
  readonly values: readonly Value[];
}

/** Where the text names a range and the tool takes one, its numbers fill their parameters together. */
export const withRange = (filled: readonly Filled[], text: string): readonly Filled[] => {
  const range = lineRange(
    filled.map(({ slot }) => slot),
    text,
  );
  return filled.map((it) => {
    const value = range.get(it.slot);
    return value === undefined ? it : { ...it, values: [value] };
  });
};

/** Says which quantity of a text no parameter can take, if there is one. */
export const unsayable = (slots: readonly Slot[], text: string): string | undefined => {
  const tail = fromEnd.exec(text)?.groups?.['tail'];
  if (tail !== undefined && !slots.some((slot) => endWords.test(slot.hints))) return tail;
  const isRange = namedLines(text) !== undefined && lineRange(slots, text).size === 0;
  return isRange ? ranged.exec(text)?.[0] : undefined;
};

const fromEnd =
  /\b(?<tail>(?:last|final|bottom) (?:(?:\d{1,6}|few|two|three|four|five|six|seven|eight|nine|ten|couple of) )?(?:lines?|rows?|words?|characters?|paragraphs?|entries|pages?))\b/iu;

const endWords = /\b(?:last|tail|from the end|bottom|backwards?|negative)\b/iu;

const ranged =
  /\blines? (?<from>\d{1,7})(?: ?(?:-|–|\.\.|to|through|until|till) ?(?<to>\d{1,7}))?\b(?! ?[*+/])/iu;

const namedLines = (text: string): NamedLines | undefined => {
  const match = ranged.exec(text);
  const { from, to = from } = match?.groups ?? {};
  if (match === null || Number(to) < Number(from)) return undefined;
  const { index } = match;
  return { from: Number(from), to: Number(to), start: index, end: index + match[0].length };
};

const isNumber = ({ kind }: Slot): boolean => kind === 'number';

const firsts = new Set(['from', 'start', 'begin', 'offset', 'first']);
const lasts = new Set(['to', 'end', 'until', 'last']);
const counts = new Set(['lines', 'count', 'limit', 'number', 'length', 'rows', 'max']);

const nameHas = ({ name }: Slot, words: ReadonlySet<string>): boolean =>
  wordsOf(name).some((word) => words.has(word));
