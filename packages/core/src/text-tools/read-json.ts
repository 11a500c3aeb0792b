import { isTooDeep, parsedJson } from '../json.js';
import { hasDoubtfulEscape, hasOddBackslash } from '../json-text/json-escape.js';
import { scanned } from '../json-text/json-scan.js';
import { repairedJson } from '../json-text/repair-json.js';

/** What a repair has made of a text. */
export interface Repair {
  readonly before: string;
  readonly after: string;
}

/** What a text says as JSON, or why it does not say one thing. */
export type JsonReading =
  | { readonly value: unknown; readonly repair?: Repair; readonly isClosed?: boolean }
  | { readonly problem: string };

/** Reads an object or an array, strictly and else with a repair that has one reading. */
export const readJson = (text: string): JsonReading => {
  const { depth, open, missing } = scanned(text);
  if (depth > 100) return { problem: 'The JSON is nested too deeply.' };
  if (hasDoubtfulEscape(text)) return { problem: backslashes };
  const strict = parsedJson(text);
  if (strict !== undefined) return single(text, { value: strict });
  const inner = /^[{[]\s*\\"/.test(text) ? parsedJson(`"${text}"`) : undefined;
  const plain = typeof inner === 'string' ? parsedJson(inner) : undefined;
  if (typeof inner === 'string' && plain !== undefined) {
    return single(inner, { value: plain, repair: { before: text, after: inner } });
  }
  const repaired = repairedJson(text);
  if (repaired !== undefined) {
    const { value, json, isClosed } = repaired;
    return { value, repair: { before: text, after: json }, isClosed };
  }
  return { problem: why(text, open !== undefined || missing.length > 0) };
};

const backslashes =
  'The JSON has a backslash that may be no escape: write each backslash of a text as \\\\.';

const single = (text: string, reading: JsonReading & { readonly value: unknown }): JsonReading => {
  if (isTooDeep(reading.value)) return { problem: 'The JSON is nested too deeply.' };
  const key = repeatedKey(text);
  return key === undefined
    ? reading
    : { problem: `The JSON has the key ${JSON.stringify(key)} twice, with different values.` };
};

const why = (text: string, isCut: boolean): string => {
  if (hasOddBackslash(text)) {
    return backslashes;
  }
  return isCut
    ? 'The JSON is not whole: a text or a bracket in it is not closed.'
    : `It is not valid JSON${reasonOf(text)}.`;
};

const reasonOf = (text: string): string => {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    return error instanceof Error ? `: ${error.message.slice(0, 160)}` : '';
  }
};

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gu;

interface Level {
  readonly isObject: boolean;
  /** The text of each value by its key. */
  readonly values: Map<string, string>;
  key: string | undefined;
  awaitsKey: boolean;
  begin: number;
}

/** Finds a key that one object of a JSON text has twice, with different values. The text is whole JSON. */
const repeatedKey = (json: string): string | undefined => {
  const levels: Level[] = [];
  let found: string | undefined;

  const endValue = (end: number): void => {
    const level = levels.at(-1);
    if (level?.key === undefined) return;
    const text = json.slice(level.begin, end).trim();
    const earlier = level.values.get(level.key);
    if (earlier !== undefined && !isSame(earlier, text)) found ??= level.key;
    level.values.set(level.key, text);
    level.key = undefined;
  };
  for (const { 0: text, index } of json.matchAll(token)) {
    const level = levels.at(-1);
    switch (text) {
      case '{':
      case '[':
        levels.push({
          isObject: text === '{',
          values: new Map(),
          key: undefined,
          awaitsKey: text === '{',
          begin: 0,
        });
        break;
      case '}':
      case ']':
        endValue(index);
        levels.pop();
        break;
      case ',':
        endValue(index);
        if (level !== undefined) level.awaitsKey = level.isObject;
        break;
      case ':':
        if (level !== undefined) level.begin = index + 1;
        break;
      default:
        if (level?.awaitsKey === true) {
          level.key = String(parsedJson(text));
          level.awaitsKey = false;
        }
    }
    if (found !== undefined) return found;
  }
  return found;
};

const isSame = (one: string, other: string): boolean =>
  one === other || JSON.stringify(parsedJson(one)) === JSON.stringify(parsedJson(other));
