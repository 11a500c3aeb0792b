import { isRegionName, zoneOf } from './time-zones.js';
import { isStopWord, type Span, type Token, tokensOf } from './words.js';

/** A place, or a time zone, that a text names. */
export interface Place extends Span {
  readonly text: string;
  /** Its IANA time zone, where it is known. */
  readonly zone?: string;
}

/**
 * Finds the places that a text names, in order: those whose time zone is known, other capitalised names, and
 * failing these whatever follows `in`, `at` or `for`.
 */
export const placesIn = (text: string): readonly Place[] => {
  const tokens = tokensOf(text);
  const places = namedPlaces(text, tokens);
  return places.length > 0 ? withoutRegions(text, places) : placeAfterPreposition(text, tokens);
};

const namedPlaces = (text: string, tokens: readonly Token[]): readonly Place[] => {
  const places: Place[] = [];
  for (let at = 0; at < tokens.length;) {
    const found = knownAt(text, tokens, at) ?? nameAt(text, tokens, at);
    if (found !== undefined) places.push(found.place);
    at += found?.length ?? 1;
  }
  return places;
};

interface Found {
  readonly place: Place;
  readonly length: number;
}

const longestName = 4;

const knownAt = (text: string, tokens: readonly Token[], at: number): Found | undefined => {
  for (let length = longestName; length > 0; length -= 1) {
    const [first, last] = [tokens[at], tokens[at + length - 1]];
    if (first === undefined || last === undefined) continue;
    const name = text.slice(first.start, last.end);
    const zone = zoneOf(name);
    if (zone === undefined || (ordinaryWords.has(name) && !isAfterPreposition(tokens, at)))
      continue;
    return { place: { text: name, zone, start: first.start, end: last.end }, length };
  }
  return undefined;
};

const nameAt = (text: string, tokens: readonly Token[], at: number): Found | undefined => {
  const isAnswer = tokens.length <= 2 && at === 0;
  const length = tokens
    .slice(at, at + longestName)
    .findIndex(
      (token, index) =>
        !isName(token, at + index === 0 && !isAnswer) || isCut(text, tokens, at, index),
    );
  const count = length < 0 ? Math.min(longestName, tokens.length - at) : length;
  const [first, last] = [tokens[at], tokens[at + count - 1]];
  if (count === 0 || first === undefined || last === undefined) return undefined;
  const name = text.slice(first.start, last.end);
  return { place: { text: name, start: first.start, end: last.end }, length: count };
};

/** Names of places are capitalised; so is the first word of a sentence, which is none. */
const isName = ({ text }: Token, opensSentence: boolean): boolean =>
  /^\p{Lu}[\p{L}'’.-]+$/u.test(text) && !opensSentence && !isStopWord(text) && !calendar.has(text);

/** A comma stands before the token. */
const isCut = (text: string, tokens: readonly Token[], at: number, index: number): boolean =>
  index > 0 && text.slice(tokens[at + index - 1]?.end, tokens[at + index]?.start).trim() !== '';

const isAfterPreposition = (tokens: readonly Token[], at: number): boolean =>
  /^(?:in|at|for|from|to|of|and|or|near)$/iu.test(tokens[at - 1]?.text ?? '');

const placeAfterPreposition = (text: string, tokens: readonly Token[]): readonly Place[] => {
  const at = tokens.findIndex(({ text: word }) => /^(?:in|at|for|near)$/iu.test(word)) + 1;
  const rest = at === 0 ? [] : tokens.slice(at, at + 2);
  const end = rest.findIndex(
    ({ text: word }) => isStopWord(word) || !/^\p{L}[\p{L}'’-]*$/u.test(word),
  );
  const name = rest.slice(0, end < 0 ? rest.length : end);
  const [first, last] = [name[0], name.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [{ text: text.slice(first.start, last.end), start: first.start, end: last.end }];
};

/** In `Tokyo, Japan` the country says where the city is; in `Paris, Texas` it says that it is another one. */
const withoutRegions = (text: string, places: readonly Place[]): readonly Place[] => {
  const [city, region, ...others] = places;
  const isRegion =
    city !== undefined &&
    region !== undefined &&
    others.length === 0 &&
    text.slice(city.end, region.start) === ', ' &&
    isRegionName(region.text);
  if (!isRegion) return places;
  if (region.zone === undefined || region.zone === city.zone) return [city];
  return [{ ...region, text: text.slice(city.start, region.end), start: city.start }];
};

const calendar = new Set(
  `Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July
  August September October November December Please Thanks Time What`.split(/\s+/u),
);

/** Cities, and words: they are taken for cities only behind a preposition. */
const ordinaryWords = new Set(
  'center easter reunion troll knox oral wake truk davis casey regina nome mahe'.split(' '),
);
