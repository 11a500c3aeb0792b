import { exactInteger, exactJson, toExactJson } from './exact-json.js';
import { isObjectOrList, isTooDeep, mayRepeatKeys, parsedJson } from './json.js';

/** JSON before and after a repair. */
export interface Repair {
  readonly before: string;
  readonly after: string;
}

/**
 * The value of a JSON text, or why it does not have exactly one. An integer that a number cannot hold is a bigint.
 * `isClosed`: brackets were missing at the end.
 */
export type JsonReading =
  | { readonly value: unknown; readonly repair?: Repair; readonly isClosed?: boolean }
  | { readonly problem: string };

/** Longer text is read strictly only. */
const maxLength = 10_000;
const maxDepth = 100;

/**
 * Reads an object or an array that a model wrote: strictly, else tolerantly. It accepts what can mean one value only: quotes of another kind, a line break in a
 * string, comments, a comma too many or too few, `True` for `true`, keys without quotes, an unescaped quote that nothing but brackets follows, brackets that are missing at the end
 * after a complete string or bracket, and closing brackets, commas and marks of a chat template after it; also a string that holds the JSON,
 * and the same JSON several times in a row, the earlier ones perhaps cut off, as servers write that send snapshots instead of deltas.
 * It makes up no word, number or key, and drops none.
 */
export const readJson = (written: string): JsonReading => {
  const bare = unfenced(written.trim());
  const text = unquoted(unmarked(bare));
  if (hasDoubtfulEscape(text)) return { problem: backslashes };
  const strict = readStrictly(text);
  if (strict !== undefined) return text === bare ? strict : repairedReading(strict, written, text);
  const last = lastSnapshot(text);
  if (last !== undefined)
    return repairedReading(readStrictly(last) ?? { problem: invalid(text) }, written, last);
  const inner = /^[{[]\s*\\"/.test(text) ? parsedJson(`"${text}"`) : undefined;
  const plain = typeof inner === 'string' ? readStrictly(inner) : undefined;
  if (typeof inner === 'string' && plain !== undefined) {
    return repairedReading(plain, written, inner);
  }
  if (hasOddBackslash(text)) return { problem: backslashes };
  const read = text.length > maxLength ? { problem: invalid(text) } : readTolerantly(text);
  return 'problem' in read
    ? read
    : { ...read, repair: { before: written, after: toExactJson(read.value) } };
};

const repairedReading = (reading: JsonReading, before: string, after: string): JsonReading =>
  'problem' in reading ? reading : { ...reading, repair: { before, after } };

/** A mark of a chat template, such as `<|call|>` and `</tool_call>`. */
const leadingMark = /^(?:<\|[\w ]{1,40}\|>|<[a-zA-Z][\w:|.-]{0,40}>)\s*/;
const trailingMark = /\s*(?:<\|[\w ]{1,40}\|>|<\/[a-zA-Z][\w:|.-]{0,40}>)$/;

const unmarked = (text: string): string => {
  let rest = text;
  while (rest.startsWith('<')) {
    const mark = leadingMark.exec(rest.slice(0, 100))?.[0];
    if (mark === undefined) return text;
    rest = rest.slice(mark.length);
  }
  while (rest.endsWith('>')) {
    const mark = trailingMark.exec(rest.slice(-100))?.[0];
    if (mark === undefined) return text;
    rest = rest.slice(0, -mark.length).trimEnd();
  }
  return rest;
};

/** Maximum number of times that JSON was put into a string. */
const maxQuotes = 3;

const unquoted = (text: string, left = maxQuotes): string => {
  if (left === 0 || !text.startsWith('"')) return text;
  const inner = parsedJson(text);
  if (typeof inner !== 'string') return text;
  const plain = unquoted(inner.trim(), left - 1);
  return /^[{[]/.test(plain) ? plain : text;
};

/** Maximum number of objects within the last snapshot. */
const maxBrackets = 100;

/** The last of several snapshots of one object: the text before it consists of beginnings of it. */
const lastSnapshot = (text: string): string | undefined => {
  if (!text.startsWith('{') || text.length > maxLength) return undefined;
  let at = text.lastIndexOf('{');
  for (let left = maxBrackets; left > 0 && at > 0; left -= 1) {
    const last = text.slice(at);
    if (areBeginnings(text.slice(0, at), last) && isObjectOrList(exactJson(last))) return last;
    at = text.lastIndexOf('{', at - 1);
  }
  return undefined;
};

const areBeginnings = (text: string, whole: string): boolean => {
  let length = 0;
  for (const character of text) {
    if (whole.startsWith(character, length)) length += character.length;
    else if (character === '{') length = 1;
    else return false;
  }
  return length > 0;
};

const unfenced = (text: string): string => {
  if (!text.startsWith('```') || !text.endsWith('```')) return text;
  const inner = text.slice(3, -3);
  return (inner.startsWith('json') ? inner.slice(4) : inner).trim();
};

export const readStrictly = (text: string): JsonReading | undefined => {
  const value = exactJson(text);
  if (value === undefined) return undefined;
  if (isTooDeep(value)) return { problem: tooDeep };
  if (!mayRepeatKeys(text, value)) return { value };
  const read = readTolerantly(text);
  return 'problem' in read ? read : { value };
};

const tooDeep = 'The JSON is nested too deeply.';
const backslashes =
  'The JSON has a backslash that may not be an escape: write each backslash in a string as \\\\.';

const cut = 'The JSON is incomplete: a string or a bracket is not closed.';
const invalid = (text: string): string => `It is not valid JSON${reasonOf(text)}.`;

const reasonOf = (text: string): string => {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    return error instanceof Error ? `: ${error.message.slice(0, 160)}` : '';
  }
};

const quotes: Readonly<Record<string, string>> = { '"': '"', '“': '”', "'": "'", '‘': '’' };
const constants = new Map<string, unknown>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
]);
const space = /(?:\s|\/\*[^]*?\*\/|(?:\/\/|#)[^\n]*)*/y;
const key = /(?:"[^"\\\n]{1,200}"|[\p{L}_$][\p{L}\p{N}_$]*)\s*:/uy;
const bareKey = /[\p{L}_$][\p{L}\p{N}_$-]*/uy;
const word = /-?[\p{L}\p{N}_][\p{L}\p{N}_.+-]*(?=[\s,}\]])/uy;
const cutWord = /[\p{L}\p{N}_.+-]+$/uy;
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const quotation = /^"[^":,{}[\]]*[^\s":,{}[\]][^":,{}[\]]*"$/;
const onlyClosers = /^[\s}\],]*$/;

type Entries = Map<string | number, unknown>;

/** A recursive descent parser. Its functions return `undefined` if the text has no unambiguous reading. */
const readTolerantly = (text: string): JsonReading => {
  let at = 0;
  let depth = 0;
  let missing = 0;
  let isLoose = false;
  let problem: string | undefined;

  const endOf = (pattern: RegExp, from: number): number => {
    pattern.lastIndex = from;
    return pattern.test(text) ? pattern.lastIndex : from;
  };
  const skip = (): void => {
    at = endOf(space, at);
  };
  const take = (pattern: RegExp): string => {
    const from = at;
    at = endOf(pattern, at);
    return text.slice(from, at);
  };
  const startsKey = (from: number): boolean => endOf(key, from) > from;
  /** A quote ends a string if JSON punctuation or the next key follows. */
  const endsString = (from: number): boolean => {
    const next = endOf(space, from);
    return next === text.length || ',:}]'.includes(text.charAt(next)) || startsKey(next);
  };
  /** Unescaped quotes in a string: pairs around words, with only brackets after the string. */
  const areQuotations = (inner: readonly number[]): boolean =>
    inner.length % 2 === 0 &&
    inner.every(
      (from, index) =>
        index % 2 === 1 || quotation.test(text.slice(from, (inner[index + 1] ?? from) + 1)),
    ) &&
    onlyClosers.test(text.slice(at));
  const string = (): string | undefined => {
    const close = quotes[text.charAt(at)];
    const parts: string[] = [];
    const inner: number[] = [];
    for (at += 1; at < text.length; at += 1) {
      const character = text.charAt(at);
      if (character === '\\') {
        const length = text.charAt(at + 1) === 'u' ? 6 : 2;
        const escape = text.slice(at, at + length);
        const decoded = escape === "\\'" ? "'" : decodedEscape(escape);
        if (decoded === undefined) return undefined;
        parts.push(decoded);
        at += length - 1;
      } else if (character === close && endsString(at + 1)) {
        at += 1;
        if (inner.length > 0 && !areQuotations(inner)) return undefined;
        isLoose ||= inner.length > 0;
        return parts.join('');
      } else {
        if (character === close) inner.push(at);
        parts.push(character);
      }
    }
    return undefined;
  };
  const bare = (): unknown => {
    const token = take(word);
    if (token === '') at = endOf(cutWord, at);
    if (constants.has(token)) return constants.get(token);
    if (number.test(token)) return exactInteger(token) ?? Number(token);
    return /^[\p{L}_]/u.test(token) && !/^(?:undefined|NaN|Infinity)$/.test(token)
      ? token
      : undefined;
  };
  const value = (): unknown => {
    const character = text.charAt(at);
    if (character === '{') return nested('}', member);
    if (character === '[') return nested(']', item);
    return Object.hasOwn(quotes, character) ? string() : bare();
  };
  /** An object or an array. Closing brackets may be missing at the end, after a complete item. */
  const nested = (close: string, next: (entries: Entries) => unknown): unknown => {
    const entries: Entries = new Map();
    const whole = (): unknown =>
      close === '}' ? Object.fromEntries(entries) : [...entries.values()];
    depth += 1;
    if (depth > maxDepth) problem = tooDeep;
    if (problem !== undefined) return undefined;
    for (at += 1; ;) {
      skip();
      if (at === text.length) {
        missing += 1;
        return /["'”’}\]]$/.test(text) && entries.size > 0 ? whole() : undefined;
      }
      if (text.charAt(at) === close) {
        at += 1;
        depth -= 1;
        return whole();
      }
      if (next(entries) === undefined) return undefined;
      if (isLoose && close === ']' && entries.size > 1) return undefined;
      skip();
      if (text.charAt(at) === ',') at += 1;
      else if (at < text.length && text.charAt(at) !== close && !startsKey(at)) return undefined;
    }
  };
  const member = (entries: Entries): unknown => {
    const name = Object.hasOwn(quotes, text.charAt(at)) ? string() : take(bareKey);
    skip();
    if (isLoose || name === undefined || name === '' || text.charAt(at) !== ':') return undefined;
    at += 1;
    skip();
    const read = value();
    if (read === undefined) return undefined;
    if (entries.has(name) && toExactJson(entries.get(name)) !== toExactJson(read)) {
      problem ??= `The JSON has the key ${JSON.stringify(name)} twice, with different values.`;
    }
    entries.set(name, read);
    return name;
  };
  const item = (entries: Entries): unknown => {
    const read = value();
    if (read !== undefined) entries.set(entries.size, read);
    return read;
  };

  const read = /^[{[]/.test(text) ? value() : undefined;
  if (read === undefined || problem !== undefined) {
    const isCut = at > 0 && at >= text.length;
    return { problem: problem ?? (isCut ? cut : invalid(text)) };
  }
  skip();
  if (!onlyClosers.test(text.slice(at))) return { problem: invalid(text) };
  return missing > 0 ? { value: read, isClosed: true } : { value: read };
};

const simple: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

const decodedEscape = (escape: string): string | undefined => {
  const name = escape.slice(1);
  if (/^u[\da-f]{4}$/i.test(name)) return String.fromCharCode(Number.parseInt(name.slice(1), 16));
  return Object.hasOwn(simple, name) ? simple[name] : undefined;
};

/** Whether an escape may be meant as a path or pattern: `\b` or `\f` before a word, `\n` after a drive letter. */
const hasDoubtfulEscape = (json: string): boolean =>
  /(?<!\\)(?:\\\\)*\\[bf](?=\w)|(?<![A-Za-z\d])[C-PR-Z]:\\[nrt][A-Za-z]/.test(json);

/** Whether a backslash starts no escape, as in a path or a pattern. Before an apostrophe it escapes that. */
const hasOddBackslash = (json: string): boolean =>
  json.replaceAll(/\\(?:u[\da-f]{4}|["'\\/bfnrt])/gi, '').includes('\\');
