import type { ToolDeclaration } from 'millrace';
import { exactJson, isRecord, isSameJson, isTooDeep, parsedJson } from 'millrace/values';
import { createJsonScan, feedValue } from '../json-scan.js';
import { readPython } from './python.js';

export type ToolTable = ReadonlyMap<string, ToolDeclaration>;

/** A call as a model wrote it, or the problem with it. */
export interface WrittenCall {
  readonly name?: string | undefined;
  /** The arguments as written: core repairs or rejects them, as it does with those of a server. */
  readonly json?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly problem?: string;
}

/** Reads the body of a mark. `name` is the one in its head, if the format has it there. */
export type ReadBody = (
  body: string,
  name: string | undefined,
  tools: ToolTable,
) => readonly WrittenCall[];

/** The members of a JSON object, or what was meant as one, with their values as written: each member may have several. */
type Members = ReadonlyMap<string, readonly string[]>;

const membersOf = (text: string): Members => {
  const members = new Map<string, readonly string[]>();
  const key = /\s*,?\s*(?:"([^"\\]{0,200})"|'([^'\\]{0,200})'|([A-Za-z_]\w{0,200}))\s*:\s*/y;
  const plain = /[^,}\]]*/y;
  let at = text.indexOf('{') + 1;
  let value = at;
  let name = '';
  for (;;) {
    key.lastIndex = at;
    const [lead, double, single, bare] = key.exec(text) ?? [];
    if (lead === undefined) {
      // Two values for one key: what the model wrote, which core refuses.
      const written = text.slice(value);
      const isTwo = '{['.includes(written.charAt(0)) && /^[\s;,]*[{[]/.test(text.slice(at));
      const before = members.get(name)?.slice(0, -1) ?? [];
      return isTwo ? members.set(name, [...before, written.trim()]) : members;
    }
    value = at + lead.length;
    at = valueEnd(text, value, plain);
    name = double ?? single ?? bare ?? '';
    members.set(name, [...(members.get(name) ?? []), text.slice(value, at).trim()]);
  }
};

const valueEnd = (text: string, at: number, plain: RegExp): number => {
  const first = text.charAt(at);
  if ('{['.includes(first)) return endOf(text, at);
  if (first === '"' || first === "'") {
    for (let end = at + 1; end < text.length; end += 1) {
      if (text.charAt(end) === '\\') end += 1;
      else if (text.charAt(end) === first) return end + 1;
    }
    return text.length;
  }
  plain.lastIndex = at;
  plain.exec(text);
  return plain.lastIndex;
};

const endOf = (text: string, from: number): number =>
  feedValue(createJsonScan(), text, from)?.end ?? text.length;

/** The objects of a list, or those that follow each other, as written. */
const itemsOf = (text: string): readonly string[] => {
  const items: string[] = [];
  let at = 0;
  for (;;) {
    const from = text.indexOf('{', at);
    if (from < 0) return items;
    const end = endOf(text, from);
    items.push(text.slice(from, end));
    at = end;
  }
};

const nameKeys = ['name', 'tool_name', 'tool', 'function'];
const inputKeys = ['arguments', 'parameters', 'args', 'input', 'inputs'];

/** `{"name": …, "arguments": …}`, or several such calls, in a list or without, with the keys of any family. */
export const readJsonCalls: ReadBody = (body, _name, tools) => {
  const items = itemsOf(body);
  return items.length === 0
    ? [{ problem: 'The list of calls has no call.' }]
    : items.map((item) => readJsonCall(item, tools));
};

/** Whether JSON without marks is a call, or several: each names a tool and has arguments. */
export const areJsonCalls = (body: string, tools: ToolTable): boolean => {
  const items = itemsOf(body);
  return (
    items.length > 0 &&
    items.every((item) => {
      const { name = '' } = readJsonCall(item, tools);
      return tools.has(name) && valuesIn(item, inputKeys).length > 0;
    })
  );
};

/** The values of the members with these keys, also within `function`. */
const valuesIn = (text: string, keys: readonly string[]): readonly string[] => {
  const outer = membersOf(text);
  const nested = (outer.get('function') ?? []).filter(isObject).map(membersOf);
  return [outer, ...nested].flatMap((members) => keys.flatMap((key) => members.get(key) ?? []));
};

const isObject = (written: string): boolean => written.startsWith('{');

/** A call has one name and one value for its arguments, however many members give them. */
const readJsonCall = (text: string, tools: ToolTable): WrittenCall => {
  const [name, ...otherNames] = valuesIn(text, nameKeys)
    .filter((it) => !isObject(it))
    .map((it) => unquoted(it).trim())
    .filter((it) => it !== '')
    .map((it) => plainName(it, tools));
  if (name === undefined) return { problem: 'The call does not name its tool.' };
  if (otherNames.some((it) => it !== name)) return { name, problem: 'The call names two tools.' };
  const [json = '{}', ...others] = valuesIn(text, inputKeys)
    .filter((it) => !isAbsent(it))
    .map(argumentsIn);
  const areSame = others.every((it) => isSameValue(it, json));
  return areSame ? { name, json } : { name, problem: 'The call has two values for its arguments.' };
};

const isSameValue = (one: string, other: string): boolean => {
  const value = exactJson(one);
  return one === other || (value !== undefined && isSameJson(value, exactJson(other)));
};

const isAbsent = (written: string): boolean => ['', '""', 'null'].includes(written);

/** Arguments may be a string of JSON. */
const argumentsIn = (written: string): string =>
  written.startsWith('"') ? unquoted(written).trim() || '{}' : written;

const unquoted = (text: string): string => {
  const value = text.startsWith('"') ? parsedJson(text) : undefined;
  return typeof value === 'string' ? value : text.replaceAll(/^['"]|['"]$/g, '');
};

/** The arguments as JSON, after a head with the name. */
export const readArguments: ReadBody = (body, name) => [
  { name, json: body.trim() === '' ? '{}' : body.trim() },
];

/** Calls as in Python. A built-in tool of Llama is written `name.call(…)`, and Gemma may print the result. */
export const readPythonCalls: ReadBody = (body, _name, tools) => {
  const text = body.trim().replace(/^print\(([^]*)\)$/, '$1');
  const read = readPython(text);
  if (!('problem' in read)) {
    return read.calls.map(({ name, input }) => ({ name: plainName(name, tools), input }));
  }
  const name = read.name === undefined ? undefined : plainName(read.name, tools);
  return [{ name, problem: read.problem }];
};

/** Some templates put tools into one. */
export const namespaces = ['functions.', 'default_api.', 'tools.'];

export const plainName = (name: string, tools: ToolTable): string => {
  const space = tools.has(name) ? undefined : namespaces.find((it) => name.startsWith(it));
  const short = name.slice(space?.length ?? 0);
  return tools.has(short) ? short : short.replace(/\.call$/, '');
};

const parameterForms = [
  {
    open: /\s*<arg_key>([^<]{1,200})<\/arg_key>\s*<arg_value>/y,
    close: '</arg_value>',
    inner: /<arg_value>/,
  },
  {
    open: /\s*<parameter(?:=|\s+name=)["']?([^<>"'\n]{1,200})["']?>/y,
    close: '</parameter>',
    inner: /<parameter(?:=|\s+name=)/,
  },
];

/** A tag for each parameter, or one JSON object. Values without a type get that of the schema. */
export const readParameters: ReadBody = (body, name = '', tools) => {
  if (body.trimStart().startsWith('{')) return readArguments(body, name, tools);
  const input = new Map<string, unknown>();
  const broken = (problem: string): readonly WrittenCall[] => [{ name, problem }];
  let at = 0;
  for (;;) {
    const found = openAt(body, at);
    if (found === undefined) break;
    const { key, from, close, inner } = found;
    const end = body.indexOf(close, from);
    if (end < 0) return broken(`The parameter '${key}' is not closed.`);
    const text = body
      .slice(from, end)
      .replace(/^\r?\n/, '')
      .replace(/\r?\n$/, '');
    // The first closing tag may be that of the inner one, which would cut the value short.
    if (inner.test(text))
      return broken(`The parameter '${key}' contains a parameter: its end is not clear.`);
    const types = typesOf(tools.get(name), key);
    const read = typed(text, types);
    if (read === undefined) {
      return broken(`The parameter '${key}' is not JSON, but its type is ${types.join(' or ')}.`);
    }
    if (input.has(key) && !isSameJson(input.get(key), read.value)) {
      return broken(`The parameter '${key}' occurs twice.`);
    }
    input.set(key, read.value);
    at = end + close.length;
  }
  return body.slice(at).trim() === ''
    ? [{ name, input: Object.fromEntries(input) }]
    : broken('There is text between the parameters.');
};

interface OpenParameter {
  readonly key: string;
  readonly from: number;
  readonly close: string;
  /** The opening tag of a parameter within its value. */
  readonly inner: RegExp;
}

const openAt = (body: string, at: number): OpenParameter | undefined => {
  for (const { open, close, inner } of parameterForms) {
    open.lastIndex = at;
    const [lead, key] = open.exec(body) ?? [];
    if (lead !== undefined && key !== undefined) {
      return { key: key.trim(), from: at + lead.length, close, inner };
    }
  }
  return undefined;
};

/** The types that a schema names for a parameter; empty if it leaves them open. */
const typesOf = (tool: ToolDeclaration | undefined, key: string): readonly unknown[] => {
  const properties = tool?.inputSchema['properties'];
  const schema =
    isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (!isRecord(schema)) return [];
  const choices = [schema, ...listOf(schema['anyOf']), ...listOf(schema['oneOf'])];
  const types = choices.flatMap((it) => (isRecord(it) ? [it['type']].flat() : []));
  const values = listOf(schema['enum']);
  const isText = values.length > 0 && values.every((it) => typeof it === 'string');
  return isText ? ['string'] : types.filter((it) => it !== undefined);
};

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A string stays as it is written; anything else is JSON, or text if the schema has no type for it. */
const typed = (
  text: string,
  types: readonly unknown[],
): { readonly value: unknown } | undefined => {
  const isText = types.includes('string');
  if (isText && !(types.includes('null') && text === 'null')) return { value: text };
  const trimmed = text.trim();
  const value = constants.has(trimmed) ? constants.get(trimmed) : exactJson(trimmed);
  if (value !== undefined && !isTooDeep(value)) return { value };
  return types.length === 0 ? { value: text } : undefined;
};

/** Models that are trained on Python write these. */
const constants = new Map<string, unknown>([
  ['True', true],
  ['False', false],
  ['None', null],
]);
