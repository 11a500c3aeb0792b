import { arithmeticPieces } from './arithmetic/pieces.js';
import { readExpressions } from './arithmetic/expression.js';
import { namesIn, proseIn, queryIn, type Source, unquoted } from './free-text.js';
import { matches } from './matches.js';
import { pathsIn } from './paths.js';
import { placesIn } from './places.js';
import type { Slot } from './read-slots.js';
import { longestForPattern } from './safe-pattern.js';
import { hasTellingShape, shapeOf } from './shape.js';
import type { Value } from './value.js';
import { overlaps, stemOf, tokensOf, wordsOf } from './words.js';

/** Finds the values that a text holds for a parameter, in the order of the text, each allowed by its schema. */
export const findValues = (slot: Slot, source: Source): readonly Value[] =>
  candidates(slot, source)
    .filter((it) => !source.taken.some((span) => overlaps(span, it)))
    .filter((it) => it.waits === true || isAllowed(slot, it.value));

/** Tells whether a parameter's schema allows a value, as far as lengths, bounds, choices and pattern go. */
export const isAllowed = (slot: Slot, value: string | number | boolean): boolean => {
  if (slot.kind === 'choice') return slot.choices.includes(value);
  if (slot.kind === 'flag') return typeof value === 'boolean';
  if (slot.kind === 'number') {
    const number = Number(value);
    const isWhole = !slot.whole || Number.isInteger(number);
    return isWhole && number >= slot.minimum && number <= slot.maximum;
  }
  const text = String(value);
  const fits = text.length >= slot.minLength && text.length <= slot.maxLength && text.trim() !== '';
  const isTried = slot.pattern !== undefined && text.length <= longestForPattern;
  return fits && (!isTried || slot.pattern.test(text));
};

const candidates = (slot: Slot, source: Source): readonly Value[] => {
  const { text } = source;
  switch (slot.kind) {
    case 'expression':
      return expressions(slot, source);
    case 'path':
      return pathsIn(text);
    case 'place':
      return places(slot, text);
    case 'url':
      return matches(text, /https?:\/\/[^\s"'<>]+[^\s"'<>.,;:!?)\]]/giu, true);
    case 'email':
      return matches(text, /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/gu, true);
    case 'date':
      return matches(text, /\b\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?\b/gu, false);
    case 'choice':
      return choices(slot, text);
    case 'number':
      return numbers(slot, source);
    case 'flag':
      return flags(slot, text);
    case 'shaped':
      return shaped(slot, text);
    case 'query':
      return queryIn(source);
    case 'prose':
      return proseIn(source);
    case 'name':
      return namesIn(source);
    case 'opaque':
      return [];
  }
};

const expressions = ({ hints }: Slot, { text, reference }: Source): readonly Value[] => {
  const options = {
    units: /\bunits?\b|\bconver/iu.test(hints),
    percent: /%|per ?cent/iu.test(hints),
    reference,
  };
  const found = readExpressions(text, options).map(({ text: value, start, end, waits }) => ({
    value,
    start,
    end,
    waits,
    telling: true,
  }));
  const quoted = matches(text, /`[^`]{1,300}`/gu, true)
    .filter(({ value }) => /\d/u.test(String(value)))
    .map((it) => ({ ...it, value: unquoted(String(it.value)) }));
  return [...quoted, ...found];
};

/** A tool whose examples hold names gets the name, any other one the time zone, where it asks for such. */
const places = ({ examples, hints }: Slot, text: string): readonly Value[] => {
  const isZone = (it: string): boolean => it.includes('/') || it === 'UTC';
  const takesNames = examples.some((it) => !isZone(it));
  const takesZones = examples.some(isZone) || /\biana\b|time ?zone/iu.test(hints);
  return placesIn(text).map(({ text: name, zone, ...span }) => {
    if (zone === undefined || !takesZones) return { ...span, value: name, telling: false };
    const [value, other] = takesNames ? [name, zone] : [zone, name];
    return { ...span, value, telling: false, others: other === value ? [] : [other] };
  });
};

const choices = (slot: Slot, text: string): readonly Value[] => {
  const tokens = tokensOf(text);
  const stems = tokens.map((token) => stemOf(token.text));
  return slot.choices
    .flatMap((value): readonly Value[] => {
      const wanted = wordsOf(String(value)).map(stemOf);
      const at = stems.findIndex((_, index) =>
        wanted.every((stem, offset) => stems[index + offset] === stem),
      );
      const [first, last] = [tokens[at], tokens[at + wanted.length - 1]];
      if (wanted.length === 0 || first === undefined || last === undefined) return [];
      return [{ value, start: first.start, end: last.end, telling: false }];
    })
    .toSorted((a, b) => a.start - b.start);
};

/** A required number may stand anywhere; one that may be left out stands with all words of its name. */
const numbers = (slot: Slot, { text }: Source): readonly Value[] => {
  const pieces = arithmeticPieces(text.slice(0, 1_000));
  const own = wordsOf(slot.name);
  const words = new Set(wordsOf(text).map(stemOf));
  const isNamed = own.every((word) => words.has(stemOf(word)));
  const namedBy = new Set(own.map(stemOf));
  const isPlural = own.at(-1)?.endsWith('s') === true;
  return pieces.flatMap((piece, index): readonly Value[] => {
    const beside = [pieces[index + 1], isPlural ? undefined : pieces[index - 1]].some(
      (it) => it !== undefined && namedBy.has(stemOf(text.slice(it.start, it.end))),
    );
    if (piece.type !== 'number' || (!slot.required && !(isNamed && beside))) return [];
    return [{ value: Number(piece.text), start: piece.start, end: piece.end, telling: false }];
  });
};

const flags = (slot: Slot, text: string): readonly Value[] => {
  const own = new Set(wordsOf(slot.name).map(stemOf));
  const tokens = tokensOf(text);
  const at = tokens.findIndex((token) => own.has(stemOf(token.text)));
  const token = tokens[at];
  if (token === undefined) return [];
  const isDenied = /^(?:no|not|without|never|non|don't)$/iu.test(tokens[at - 1]?.text ?? '');
  return [{ value: !isDenied, start: token.start, end: token.end, telling: false }];
};

/** Words that look like the schema's examples, or fit its pattern. */
const shaped = (slot: Slot, text: string): readonly Value[] => {
  const shapes = new Set(slot.examples.filter(hasTellingShape).map(shapeOf));
  const fits = (word: string): boolean =>
    (slot.pattern === undefined || isAllowed(slot, word)) &&
    (shapes.size === 0
      ? slot.pattern !== undefined
      : shapes.has(shapeOf(word)) || slot.pattern !== undefined);
  return tokensOf(text)
    .filter((token) => token.text.length <= longestForPattern)
    .slice(0, 32)
    .filter((token) => fits(token.text))
    .map(({ text: value, ...span }) => ({ ...span, value, telling: true }));
};
