import { jsonrepair } from 'jsonrepair';
import { isRecord, isTooDeep, parsedJson } from '../json.js';

/** Longer arguments are not repaired: a repair may take time that grows with the square of them. */
const maxLength = 10_000;

/**
 * The one object that a model can have meant with arguments that are not JSON: quotes of another kind, a comma too many, a comment, a fence,
 * `True` for `true`. Nothing where there is more than one reading: where an end is missing, or where a repair would make words or
 * brackets that are not there, or lose some.
 */
export const repaired = (text: string): Readonly<Record<string, unknown>> | undefined => {
  if (text.length > maxLength) return undefined;
  const body = unfenced(text.trim());
  if (!body.startsWith('{') || !body.endsWith('}')) return undefined;
  if (!closesItsTexts(body) || hasOddEscapes(body)) return undefined;
  const value = parsedJson(repairedText(body));
  if (!isRecord(value) || isTooDeep(value)) return undefined;
  // Of the value, and not of its text: a key that is there twice is lost in it.
  const said = essence(JSON.stringify(value).replaceAll(jsonString, unquoted));
  const isSame = [body, withoutComments(body)].some((it) => essence(unescaped(it)) === said);
  return isSame ? value : undefined;
};

const unfenced = (text: string): string => {
  if (!text.startsWith('```') || !text.endsWith('```')) return text;
  const inner = text.slice(3, -3);
  return (inner.startsWith('json') ? inner.slice(4) : inner).trim();
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
    count('“') === count('”')
  );
};

/** A mark that escapes nothing, as in `C:\Users` or `\d+`, may be one too few or one too many. */
const hasOddEscapes = (body: string): boolean =>
  body.replaceAll(/\\(?:["'\\/bfnrt]|u[\da-f]{4})/giu, '').includes('\\');

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
