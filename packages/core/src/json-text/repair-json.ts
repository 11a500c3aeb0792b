import { jsonrepair } from 'jsonrepair';
import { isTooDeep, parsedJson } from '../json.js';
import { hasOddBackslash } from './json-escape.js';
import { scanned } from './json-scan.js';

/** Longer texts are not repaired: a repair may take time that grows with the square of them. */
const maxLength = 10_000;

/** What a text that is no JSON must have meant. */
export interface Repaired {
  readonly value: object;
  readonly json: string;
  /** Brackets were missing at the end. */
  readonly isClosed: boolean;
}

/**
 * The one value that a model can have meant with an object or an array that is no JSON: quotes of another kind, a comma too many, a
 * comment, `True` for `true`, brackets missing at the very end. Nothing where there is more than one reading: where a text, a number or
 * a word may have been cut, where a backslash may belong to a path, or where a repair would make words, numbers or brackets
 * that are not there, or lose some.
 */
export const repairedJson = (text: string): Repaired | undefined => {
  if (text.length > maxLength || hasOddBackslash(text)) return undefined;
  const missing = missingAtEnd(text);
  if (missing === undefined) return undefined;
  const body = `${text}${missing}`;
  if (!/^[{[]/.test(body) || !/[}\]]$/.test(body) || !closesItsTexts(body)) return undefined;
  const value = parsedJson(repairedText(body));
  if (typeof value !== 'object' || value === null || isTooDeep(value)) return undefined;
  if (keysIn(value) !== scanned(body).colons) return undefined;
  const json = JSON.stringify(value);
  // Of the value, and not of its text: a key that is there twice is lost in it.
  const said = essence(json.replaceAll(jsonString, unquoted));
  const isSame = [body, withoutComments(body)].some((it) => essence(unescaped(it)) === said);
  return isSame ? { value, json, isClosed: missing !== '' } : undefined;
};

/** A repair may make a key of a part of a text. */
const keysIn = (value: object): number =>
  Object.values(value).reduce<number>(
    (count, item: unknown) =>
      count + (typeof item === 'object' && item !== null ? keysIn(item) : 0),
    Array.isArray(value) ? 0 : Object.keys(value).length,
  );

/** The brackets that a text lacks at its end; nothing, where more than these may be missing. */
const missingAtEnd = (text: string): string | undefined => {
  const { missing, isMismatched, open, end } = scanned(text);
  if (end === text.length) return isMismatched ? undefined : '';
  if (end !== undefined || isMismatched || open !== undefined) return undefined;
  return /["'”’}\]]$/.test(text) ? missing.toReversed().join('') : undefined;
};

/** A text that nothing ends may have been cut off, and hide a bracket. */
const closesItsTexts = (body: string): boolean => {
  const rest = outsideTexts(body);
  const count = (mark: string): number => (rest ?? '').split(mark).length - 1;
  return (
    rest !== undefined &&
    !rest.includes(';') &&
    !rest.includes('`') &&
    count("'") % 2 === 0 &&
    count('“') === count('”') &&
    count('‘') === count('’')
  );
};

/** What stands outside of texts in double quotes; nothing, where one of them is open. In one pass: each mark is looked at once. */
const outsideTexts = (body: string): string | undefined => {
  let rest = '';
  let isText = false;
  for (let at = 0; at < body.length; at += 1) {
    const character = body.charAt(at);
    if (character === '\\') at += 1;
    else if (character === '"') isText = !isText;
    else if (!isText) rest += character;
  }
  return isText ? undefined : rest;
};

const repairedText = (text: string): string => {
  try {
    return jsonrepair(text);
  } catch {
    return '';
  }
};

/** What a repair must leave as it is: words, numbers and brackets, in their order. */
const essence = (text: string): string =>
  text
    .replaceAll(/[^\p{L}\p{N}.{}[\]]/gu, '')
    .replaceAll(/True|False/gu, (word) => word.toLowerCase())
    .replaceAll('None', 'null');

const jsonString = /"(?:[^"\\]|\\.)*"/gu;

const unquoted = (text: string): string => String(parsedJson(text));

const unescaped = (text: string): string =>
  text.replaceAll(/\\(?:u([\da-f]{4})|([^]))/giu, (_all, code: string | undefined, character) =>
    code === undefined
      ? 'bfnrt'.includes(String(character))
        ? ' '
        : String(character)
      : String.fromCharCode(Number.parseInt(code, 16)),
  );

/** A mark within a word, as in an address, begins no comment. */
const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[^]*?\*\/|(?<=[\s,{[\]}])\/\/[^\n]*/gu, '');
