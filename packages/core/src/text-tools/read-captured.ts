import { isRecord, parsedJson } from '../json.js';
import { scanned } from '../json-text/json-scan.js';
import { isOneOf, keys } from './keys.js';
import { readJson } from './read-json.js';
import { readEntry, readNamed, readValue, type ReadingNeeds } from './read-entry.js';
import { type Reading, unreadable } from './reading.js';
import { parameterOf, type ToolTable } from './tool-table.js';

/** Reads the JSON of an action or an answer. */
export const readCaptured = (text: string, needs: ReadingNeeds): Reading => {
  const read = readJson(text);
  if ('problem' in read) {
    return cutAnswer(text, needs) ?? unreadable(read.problem, namedTool(text, needs.tools));
  }
  return checked(readValue(read.value, needs), read);
};

/** Tells whether each action in a text that can be read has a key of arguments. */
export const hasArguments = (text: string): boolean => {
  const read = readJson(text);
  if ('problem' in read) return false;
  return [read.value].flat().every((entry) => {
    if (!isRecord(entry)) return false;
    const nested = keys.name.map((key) => entry[key]).filter(isRecord);
    return [entry, ...nested].some((part) => keys.input.some((key) => Object.hasOwn(part, key)));
  });
};

/** Reads the JSON of the arguments of a tool that has been named before. */
export const readArguments = (name: string, text: string, needs: ReadingNeeds): Reading => {
  const read = readJson(text);
  if ('problem' in read) return unreadable(read.problem, name);
  const { value } = read;
  if (!isRecord(value)) return unreadable('The arguments must be a JSON object.', name);
  return checked(
    repeatsName(name, value, needs) ? readEntry(value, needs) : readNamed(name, value, needs),
    read,
  );
};

/** Tells whether the arguments are the whole action once more. */
const repeatsName = (
  name: string,
  value: Readonly<Record<string, unknown>>,
  { tools }: ReadingNeeds,
): boolean => {
  const key = keys.name.find((it) => Object.hasOwn(value, it) && value[it] === name);
  const isParameter = key !== undefined && parameterOf(tools.get(name), key) !== undefined;
  return key !== undefined && !isParameter && keys.input.some((it) => Object.hasOwn(value, it));
};

const checked = (
  reading: Reading,
  { repair, isClosed }: Exclude<ReturnType<typeof readJson>, { readonly problem: string }>,
): Reading => {
  const bare = reading.asks.find(({ input }) => Object.keys(input).length === 0);
  if (isClosed === true && bare !== undefined) {
    return unreadable('The JSON is not whole: a bracket in it is not closed.', bare.name);
  }
  return repair === undefined ? reading : { ...reading, repairs: [repair, ...reading.repairs] };
};

/** An answer that was cut off is taken as far as it goes. */
const cutAnswer = (text: string, needs: ReadingNeeds): Reading | undefined => {
  const { open, missing } = scanned(text);
  const key = open?.path.at(-1);
  if (open?.isKey !== false || key === undefined || !isOneOf(keys.answer, key)) return undefined;
  const after = `${withoutCutEscape(text)}"${missing.toReversed().join('')}`;
  const value = parsedJson(after);
  if (value === undefined) return undefined;
  const reading = readValue(value, needs);
  if (reading.answer === undefined || reading.problem !== undefined) return undefined;
  return reading.asks.length > 0
    ? undefined
    : { ...reading, repairs: [{ before: text, after }, ...reading.repairs] };
};

/** A text without an escape, or half a pair of them, that it was cut within. */
const withoutCutEscape = (text: string): string =>
  withoutEscape(withoutEscape(text, /\\(?:u[\da-f]{0,3})?$/i), /\\ud[89ab][\da-f]{2}$/i);

const withoutEscape = (text: string, pattern: RegExp): string => {
  const tail = text.slice(-6);
  const begin = pattern.exec(tail)?.index;
  if (begin === undefined) return text;
  let at = text.length - tail.length + begin;
  const end = at;
  while (text.charAt(at - 1) === '\\') at -= 1;
  return (end - at) % 2 === 0 ? text.slice(0, end) : text;
};

/** The tool that a text names which cannot be read as a whole. */
const namedTool = (text: string, tools: ToolTable): string | undefined => {
  const pattern =
    /["'“]?(?:tool_name|tool|name|action|function)["'”]?\s{0,9}:\s{0,9}["'“]([^"'“”\n]{1,100})["'”]/g;
  return [...text.slice(0, 10_000).matchAll(pattern)]
    .map(([, name = '']) => name.trim())
    .find((name) => tools.has(name));
};
