import { jsonrepair } from 'jsonrepair';
import { isRecord, isTooDeep, parsedJson } from '../json.js';

/** Longer arguments are not repaired: what is that long and no JSON is rather data gone wrong. */
const maxLength = 100_000;

/**
 * The one object that a model can have meant with arguments that are not JSON: quotes of another kind, a comma too many, a comment, a fence,
 * `True` for `true`. Nothing where there is more than one reading: where an end is missing, or where a repair would make words or
 * brackets that are not there, or lose some.
 */
export const repaired = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const body = unfenced(text.trim());
  if (body.length > maxLength || !body.startsWith('{') || !body.endsWith('}')) return undefined;
  if (!closesItsTexts(body)) return undefined;
  const json = repairedText(body);
  const value = parsedJson(json);
  if (!isRecord(value) || isTooDeep(value)) return undefined;
  const said = essence(json.replaceAll(jsonString, unquoted));
  const isSame = [body, withoutComments(body)].some((it) => essence(unescaped(it)) === said);
  return isSame ? value : undefined;
};

const unfenced = (text: string): string =>
  /^```(?:json)?\s*([^]*?)\s*```$/u.exec(text)?.[1]?.trim() ?? text;

/** A text that nothing ends may have been cut off, and hide a bracket. */
const closesItsTexts = (body: string): boolean => {
  const count = (text: string, mark: string): number => text.split(mark).length - 1;
  const rest = body.replaceAll(jsonString, '').replaceAll(/\\./gu, '');
  return !rest.includes('"') && count(rest, "'") % 2 === 0 && count(rest, '“') === count(rest, '”');
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

const withoutComments = (text: string): string => text.replaceAll(/\/\*[^]*?\*\/|\/\/[^\n]*/gu, '');
