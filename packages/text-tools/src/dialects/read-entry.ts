import type { JsonSchema, ToolDeclaration } from 'millrace';
import {
  exactJson,
  isRecord,
  isSameJson,
  type JsonReading,
  readJson,
  toExactJson,
} from 'millrace/values';
import { createJsonScan, feedValue } from '../json-scan.js';
import { isReadable, readable, textOf } from './readable-answer.js';
import { isEmptyValue, parameterOf, readInput } from './read-input.js';
import { isKnownKey, isOneOf, keys, plainKey } from './scanner.js';
import { joinReadings, emptyReading, type Reading, unreadable } from './parse-result.js';

export interface ReadingContext {
  readonly tools: ToolTable;
  readonly completions: readonly string[];
  readonly outputSchema: JsonSchema | undefined;
}

type JsonRecord = Readonly<Record<string, unknown>>;

const readValue = (value: unknown, needs: ReadingContext): Reading => {
  if (Array.isArray(value)) return readList(value, needs);
  if (!isRecord(value)) return unreadable('An action must be a JSON object.');
  const { outputSchema } = needs;
  return outputSchema !== undefined && isOutput(value, outputSchema, needs)
    ? { ...emptyReading, answer: toExactJson(value) }
    : readEntry(value, needs);
};

const readList = (entries: readonly unknown[], needs: ReadingContext): Reading => {
  if (entries.length === 0) return unreadable('The list of actions is empty.');
  return joinReadings(
    entries.map((entry) =>
      isRecord(entry) ? readEntry(entry, needs) : unreadable('An action must be a JSON object.'),
    ),
  );
};

const isOutput = (value: JsonRecord, schema: JsonSchema, { tools }: ReadingContext): boolean => {
  const names = valuesOf(value, keys.name);
  if (names.some((name) => typeof name === 'string' && tools.has(name))) return false;
  const answers = valuesOf(value, keys.answer);
  if (answers.some((answer) => fits(answer, schema))) return false;
  if (listOf(schema['required']).length > 0) return fits(value, schema);
  const properties = recordOf(schema['properties']);
  return Object.keys(value).every((key) => !isKnownKey(key) || Object.hasOwn(properties, key));
};

export const fits = (value: unknown, { required, properties }: JsonSchema): boolean =>
  isRecord(value) &&
  listOf(required).every((key) => Object.hasOwn(value, String(key))) &&
  Object.entries(recordOf(properties)).every(([key, it]) => isOfType(value[key], it));

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const recordOf = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

const isOfType = (value: unknown, property: unknown): boolean => {
  if (value === undefined || !isRecord(property)) return true;
  const types = [property['type']].flat().filter((type) => typeof type === 'string');
  if (types.length === 0) return true;
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  if (type === 'bigint') return types.includes('number') || types.includes('integer');
  return types.includes(type) || (type === 'number' && types.includes('integer'));
};

const readEntry = (written: JsonRecord, needs: ReadingContext): Reading => {
  const entry = withPlainKeys(written);
  const around = aroundCalls(entry);
  if (around !== undefined) {
    const inner = readValue(around, needs);
    const thought = thoughtOf(valuesOf(entry, keys.thought));
    return thought === undefined ? inner : { ...inner, thought };
  }
  const { names, hasInput, inputs, answers, thought, unknown } = membersOf(entry, needs);
  const [name, otherName] = names;
  const thoughtOnly: Reading = thought === undefined ? emptyReading : { ...emptyReading, thought };

  if (otherName !== undefined) return unreadable('It names two different tools.');
  if (inputs.length > 1) {
    return unreadable('It has two different arguments.', nameOf(name));
  }
  if (answers.length > 1) return unreadable('It has two different answers.');
  if (name === undefined) {
    const isProtocol = ['tool', 'final_answer'].some((key) => Object.hasOwn(entry, key));
    return answered(thoughtOnly, answers, inputs, unknown.length > 0, isProtocol);
  }
  if (typeof name !== 'string') return unreadable('The name of the tool must be a string.');
  const trimmed = name.trim();
  if (answers.some((answer) => answer !== '')) {
    return unreadable('It has both an action and an answer.', trimmed);
  }
  const isData = !Object.hasOwn(entry, 'tool') && !hasInput && unknown.length > 0;
  const others = unknown.map((key) => JSON.stringify(key)).join(', ');
  const reading =
    inputs.length === 0 && unknown.length > 0
      ? unreadable(
          `It has ${others.slice(0, 200)} next to the name of the tool; put parameters into its arguments.`,
          trimmed,
        )
      : readNamed(trimmed, inputs[0], needs);
  return {
    ...reading,
    ...(thought === undefined ? {} : { thought }),
    ...(isData ? { isData } : {}),
  };
};

/** The parts of a call and of an answer in an entry, by the meaning of its keys, and its unknown keys. Its name may be an object with the call. */
const membersOf = (entry: JsonRecord, needs: ReadingContext) => {
  const nested = valuesOf(entry, keys.name)
    .filter((it) => !isEmptyValue(it))
    .find(isRecord);
  const parts = nested === undefined ? [entry] : [entry, nested];
  const all = (list: readonly string[]): readonly unknown[] =>
    distinct(parts.flatMap((part) => valuesOf(part, list)));

  const names = distinct(
    all(keys.name).filter(
      (name) => (!isRecord(name) || isEmptyValue(name)) && !isNone(name, needs),
    ),
  );
  const isFlagged = keys.name.some((key) => parts.some((part) => Object.hasOwn(part, key)));
  const beside: Beside = names[0] !== undefined ? 'tool' : isFlagged ? 'none' : undefined;
  const answers = parts.flatMap((part) =>
    keys.answer
      .filter((key) => Object.hasOwn(part, key) && !isNoAnswer(key, part[key], beside))
      .map((key) => part[key]),
  );
  const unknown = parts.flatMap((part) =>
    Object.keys(part).filter(
      (key) =>
        !isKnownKey(key) ||
        (isOneOf(keys.around, key) && part[key] !== null && !isEmptyValue(part[key])),
    ),
  );
  const inputs = all(keys.input);
  return {
    names,
    hasInput: inputs.length > 0,
    inputs: inputs.filter((input) => input !== null && input !== ''),
    answers: distinct(answers),
    thought: thoughtOf(all(keys.thought)),
    unknown,
  };
};

/** The call or the list of calls that a message of an API contains. */
const aroundCalls = (entry: JsonRecord): object | undefined =>
  keys.name.some((key) => Object.hasOwn(entry, key))
    ? undefined
    : keys.around
        .map((key) => entry[key])
        .filter((it) => typeof it === 'object' && it !== null)
        .find((it) => !isEmptyValue(it));

const withPlainKeys = (entry: JsonRecord): JsonRecord =>
  Object.fromEntries(
    Object.entries(entry).map(([key, value]) => {
      const plain = plainKey(key);
      return [plain !== key && Object.hasOwn(entry, plain) ? key : plain, value];
    }),
  );

/** The company of an answer: a tool, or a key without a tool. */
type Beside = 'tool' | 'none' | undefined;

/**
 * Whether a value says that there is an answer, or none, instead of being one. Beside a tool, any word for that counts;
 * beside none, only what hardly is an answer.
 */
const isNoAnswer = (key: string, answer: unknown, beside: Beside): boolean => {
  if (answer === null || isEmptyValue(answer)) return true;
  const isOfFlag = key === 'final_answer';
  if (typeof answer === 'boolean') return isOfFlag || beside !== undefined;
  if (answer === 0 || answer === 1) return beside === 'tool' || (isOfFlag && beside === 'none');
  if (typeof answer !== 'string' || beside === undefined) return false;
  const word = answer.trim().toLowerCase();
  return flagWords.includes(word) || (beside === 'tool' && ['yes', 'no', '0', '1'].includes(word));
};

const flagWords: readonly string[] = ['true', 'false', 'none', 'null', 'nil', 'undefined', 'n/a'];

/** Whether text may become a word that is no answer. */
export const mayBeFlag = (text: string): boolean => {
  const word = text.trim().toLowerCase();
  return [...flagWords, 'yes', 'no', '0', '1'].some((it) => it.startsWith(word));
};

const answered = (
  thoughtOnly: Reading,
  answers: readonly unknown[],
  inputs: readonly unknown[],
  hasUnknown: boolean,
  isProtocol: boolean,
): Reading => {
  const [answer] = answers;
  const isBare = inputs.every((input) => isEmptyValue(input) || isNone(input, noTools));
  if (answer !== undefined && !isBare) {
    return unreadable('It has both arguments and an answer.');
  }
  if (answer !== undefined) {
    return { ...thoughtOnly, answer: readable(answer), ...(hasUnknown ? { isData: true } : {}) };
  }
  if (thoughtOnly.thought !== undefined && isBare && !hasUnknown) {
    return isProtocol ? { ...thoughtOnly, isProtocol } : thoughtOnly;
  }
  return {
    ...unreadable('It has neither the name of a tool nor an answer.'),
    ...(hasUnknown ? { isData: true } : {}),
    ...(isProtocol && !hasUnknown ? { isProtocol } : {}),
  };
};

export const readNamed = (written: string, input: unknown, needs: ReadingContext): Reading => {
  const name = toolNamed(written, needs.tools);
  const tool = needs.tools.get(name);
  if (tool === undefined && isCompletion(name, needs)) return completed(input, needs);
  const read = readInput(input, tool);
  return 'problem' in read
    ? unreadable(read.problem, name)
    : { calls: [{ name, input: read.input }], repairs: read.repairs };
};

/** The tool that a name means, in another case, with brackets or in the namespace of a template; otherwise, the name. */
export const toolNamed = (written: string, tools: ToolTable): string => {
  if (tools.has(written)) return written;
  const name = written.replace(/^(?:functions|default_api|tools)\./, '').replace(/\(\)$/, '');
  if (tools.has(name)) return name;
  const [found, other] = [...tools.keys()].filter((it) => it.toLowerCase() === name.toLowerCase());
  return found !== undefined && other === undefined ? found : written;
};

export const isCompletion = (name: string, { tools, completions }: ReadingContext): boolean =>
  !tools.has(name) && [...completions, 'final_answer', 'final answer'].includes(name.toLowerCase());

const completed = (input: unknown, { outputSchema }: ReadingContext): Reading => {
  if (input === undefined || input === null || input === '') {
    return unreadable('The answer is missing.');
  }
  if (!isRecord(input)) return { ...emptyReading, answer: readable(input) };
  // If the answer must match a schema, this may be it.
  if (
    outputSchema === undefined &&
    Object.values(input).every((value) => value === null || isEmptyValue(value))
  ) {
    return { ...emptyReading, answer: '' };
  }
  const answers = distinct(valuesOf(input, keys.answer));
  const isWhole =
    answers.length === 1 && Object.keys(input).every((key) => isOneOf(keys.answer, key));
  if (outputSchema !== undefined) {
    return { ...emptyReading, answer: textOf(isWhole ? answers[0] : input) };
  }
  return { ...emptyReading, answer: readable(isWhole ? answers[0] : input) };
};

const thoughtOf = (thoughts: readonly unknown[]): string | undefined => {
  const texts = thoughts.filter((thought) => thought !== null && thought !== '').map(textOf);
  return texts.length === 0 ? undefined : texts.join('\n\n');
};

export const isNone = (name: unknown, { tools }: Pick<ReadingContext, 'tools'>): boolean =>
  name === null ||
  name === false ||
  name === 0 ||
  isEmptyValue(name) ||
  (typeof name === 'string' &&
    !tools.has(name) &&
    /^\s*(?:none|null|nil|undefined|n\/a|false|no[ _]?tool)?\s*$/i.test(name));

const noTools: Pick<ReadingContext, 'tools'> = { tools: new Map() };

const nameOf = (name: unknown): string | undefined => (typeof name === 'string' ? name : undefined);

const valuesOf = (record: JsonRecord, list: readonly string[]): readonly unknown[] =>
  list.filter((key) => Object.hasOwn(record, key)).map((key) => record[key]);

const distinct = (values: readonly unknown[]): readonly unknown[] =>
  values.filter((value, index) => values.findIndex((other) => isSameJson(other, value)) === index);

export type ToolTable = ReadonlyMap<string, ToolDeclaration>;

export const toolTable = (tools: readonly ToolDeclaration[]): ToolTable =>
  new Map(tools.map((tool) => [tool.name, tool]));

/** Reads the JSON of an action or an answer. */
export const readCaptured = (text: string, needs: ReadingContext): Reading => {
  const read = readJson(text);
  if ('problem' in read) {
    return cutAnswer(text, needs) ?? unreadable(read.problem, namedTool(text, needs.tools));
  }
  return checked(readValue(read.value, needs), read);
};

export const hasArguments = (text: string): boolean => {
  const read = readJson(text);
  return !('problem' in read) && [read.value].flat().every(hasInput);
};

const hasInput = (value: unknown): boolean => {
  if (!isRecord(value)) return false;
  const entry = withPlainKeys(value);
  const around = aroundCalls(entry);
  if (around !== undefined) return [around].flat().every(hasInput);
  const nested = keys.name.map((key) => entry[key]).filter(isRecord);
  return [entry, ...nested].some((part) => keys.input.some((key) => Object.hasOwn(part, key)));
};

export const readArguments = (name: string, text: string, needs: ReadingContext): Reading => {
  const read = readJson(text);
  if ('problem' in read) return unreadable(read.problem, name);
  const { value } = read;
  if (!isRecord(value)) return unreadable('The arguments must be a JSON object.', name);
  return checked(
    repeatsName(name, value, needs) ? readEntry(value, needs) : readNamed(name, value, needs),
    read,
  );
};

const repeatsName = (
  name: string,
  value: Readonly<Record<string, unknown>>,
  { tools }: ReadingContext,
): boolean => {
  const key = keys.name.find((it) => Object.hasOwn(value, it) && value[it] === name);
  const isParameter = key !== undefined && parameterOf(tools.get(name), key) !== undefined;
  return key !== undefined && !isParameter && keys.input.some((it) => Object.hasOwn(value, it));
};

const checked = (
  reading: Reading,
  { repair, isClosed }: Exclude<JsonReading, { readonly problem: string }>,
): Reading => {
  const bare = reading.calls.find(({ input }) => Object.keys(input).length === 0);
  if (isClosed === true && bare !== undefined) {
    return unreadable('The JSON is incomplete: a bracket is not closed.', bare.name);
  }
  return repair === undefined ? reading : { ...reading, repairs: [repair, ...reading.repairs] };
};

const cutAnswer = (text: string, needs: ReadingContext): Reading | undefined => {
  const scan = createJsonScan();
  feedValue(scan, text);
  const { open, missing } = scan;
  if (open?.isKey !== false) return undefined;
  const end = open.path.findIndex((key) => isOneOf(keys.answer, key)) + 1;
  if (end === 0 || !isReadable(open.path.slice(end))) return undefined;
  const after = `${withoutCutEscape(text)}"${missing.toReversed().join('')}`;
  const value = exactJson(after);
  if (value === undefined) return undefined;
  const reading = readValue(value, needs);
  if (reading.answer === undefined || reading.problem !== undefined) return undefined;
  return reading.calls.length > 0
    ? undefined
    : { ...reading, repairs: [{ before: text, after }, ...reading.repairs] };
};

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

const namedTool = (text: string, tools: ToolTable): string | undefined => {
  const pattern =
    /["'“]?(?:tool_name|tool|name|action|function)["'”]?\s{0,9}:\s{0,9}["'“]([^"'“”\n]{1,100})["'”]/g;
  return [...text.slice(0, 10_000).matchAll(pattern)]
    .map(([, name = '']) => name.trim())
    .find((name) => tools.has(name));
};
