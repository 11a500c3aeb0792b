import { isRecord, parsedJson } from './json.js';

/** A number of fewer digits is held exactly. */
const inexactLength = 16;
const longNumber = /[\d.]{16}/;
const numbers = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Parses JSON of a model or a vendor: an integer that a JavaScript number cannot hold becomes a bigint instead of another
 * integer. Returns `undefined` if the text is not JSON.
 */
export const exactJson = (text: string): unknown => {
  const { mark, json } = markedJson(text);
  if (mark === undefined) return parsedJson(text);
  try {
    return JSON.parse(json, (_key, value: unknown) =>
      typeof value === 'string' && value.startsWith(mark)
        ? BigInt(value.slice(mark.length))
        : value,
    );
  } catch {
    return undefined;
  }
};

/** A longer number has one character in sixteen, and of those five apart from it two in a row: more than the ten digits of a timestamp. */
const hasLongNumber = (text: string): boolean => {
  for (let at = inexactLength - 1; at < text.length; at += inexactLength) {
    if (!isDigit(text, at)) continue;
    const [before, after] = [isDigit(text, at - 5), isDigit(text, at + 5)];
    if (before ? !after && !isDigit(text, at - 10) : !after || !isDigit(text, at + 10)) continue;
    if (longNumber.test(text.slice(at - inexactLength + 1, at + inexactLength))) return true;
  }
  return false;
};

/** JSON in which each integer that a number cannot hold is a string that starts with the mark; without a mark, it has none. */
export const markedJson = (text: string): { readonly json: string; readonly mark?: string } => {
  if (!hasLongNumber(text)) return { json: text };
  const mark = markFor(text);
  const json = outsideStrings(text, (part) =>
    part.replace(numbers, (token) => {
      const exact = exactInteger(token);
      return exact === undefined ? token : `"${mark}${exact}"`;
    }),
  );
  return json === text ? { json } : { json, mark };
};

/** Converts a value that `exactJson` returned back to JSON. Throws like `JSON.stringify` if it has no JSON. */
export const toExactJson = (value: unknown): string => {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    if (!hasInexact(value)) throw cause;
  }
  const mark = markFor(JSON.stringify(value, (_key, it: unknown) => (isBigint(it) ? 0 : it)));
  return JSON.stringify(value, (_key, it: unknown) =>
    isBigint(it) ? `${mark}${it}` : it,
  ).replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1');
};

const isBigint = (value: unknown): value is bigint => typeof value === 'bigint';

/** The integer of a number in JSON if a JavaScript number has another value; of one in powers of ten, other digits. */
export const exactInteger = (token: string): bigint | undefined => {
  const held = Number(token);
  if (!Number.isFinite(held) || Math.abs(held) <= Number.MAX_SAFE_INTEGER) return undefined;
  const exact = integerOf(token);
  if (exact === undefined) return undefined;
  const kept = /e/i.test(token) ? integerOf(String(held)) : BigInt(held);
  return kept === exact ? undefined : exact;
};

const integerOf = (token: string): bigint | undefined => {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(token) ?? [];
  const digits = `${whole}${fraction}`.replace(/0+$/, '');
  const zeros = Number(power) + whole.length - digits.length;
  return zeros < 0 ? undefined : BigInt(`${sign}${digits}${'0'.repeat(zeros)}`);
};

/** Whether a value that `exactJson` returned has an integer that a number cannot hold. */
export const hasInexact = (value: unknown): boolean =>
  typeof value === 'bigint' ||
  (Array.isArray(value)
    ? value.some(hasInexact)
    : isRecord(value) && Object.values(value).some(hasInexact));

/** An integer that a number cannot hold, and its place. */
export interface InexactInteger {
  readonly path: readonly string[];
  readonly value: bigint;
}

export const inexactIn = (
  value: unknown,
  path: readonly string[] = [],
): readonly InexactInteger[] => {
  if (isBigint(value)) return [{ path, value }];
  if (!Array.isArray(value) && !isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => inexactIn(item, [...path, key]));
};

/** Whether the character is a digit or a point. */
const isDigit = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at);
  return code === 46 || (code >= 48 && code <= 57);
};

/** A character that the text contains neither itself nor escaped. */
const markFor = (text: string): string => {
  for (let code = 0xe000; code < 0xf8ff; code += 1) {
    const mark = String.fromCharCode(code);
    if (!text.includes(mark) && !text.toLowerCase().includes(`\\u${code.toString(16)}`))
      return mark;
  }
  throw new RangeError('The JSON uses all characters of the private use area.');
};

const outsideStrings = (text: string, changed: (part: string) => string): string => {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    const end = quote === -1 ? text.length : endOfString(text, quote);
    parts.push(changed(text.slice(at, quote === -1 ? end : quote)));
    if (quote !== -1) parts.push(text.slice(quote, end));
    at = end;
  }
  return parts.join('');
};

const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; ;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    let before = quote;
    while (text[before - 1] === '\\') before -= 1;
    at = quote + 1;
    if ((quote - before) % 2 === 0) return at;
  }
};

/** The arguments of a tool call as a part of a chunk: JSON if a number cannot hold one of their integers. */
export const toolInput = (
  input: unknown,
): { readonly input: unknown } | { readonly json: string } =>
  hasInexact(input) ? { json: toExactJson(input) } : { input };
