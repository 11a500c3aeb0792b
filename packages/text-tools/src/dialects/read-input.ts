import type { ToolDeclaration } from 'millrace';
import { isRecord, parsedJson, readJson, type Repair } from 'millrace/values';

export const isEmptyValue = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

type InputReading =
  | { readonly input: Readonly<Record<string, unknown>>; readonly repairs: readonly Repair[] }
  | { readonly problem: string };

/** Reads the arguments of a tool call, which may be text. */
export const readInput = (value: unknown, tool: ToolDeclaration | undefined): InputReading => {
  if (value === undefined || value === null || isEmptyValue(value))
    return { input: {}, repairs: [] };
  if (isRecord(value)) return { input: value, repairs: [] };
  if (typeof value === 'string') return readText(value, tool);
  return { problem: 'The arguments must be a JSON object.' };
};

const readText = (text: string, tool: ToolDeclaration | undefined): InputReading => {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === 'null') return { input: {}, repairs: [] };
  if (trimmed.startsWith('{')) {
    const read = readJson(trimmed);
    if ('problem' in read) return read;
    if (isRecord(read.value)) {
      return { input: read.value, repairs: read.repair === undefined ? [] : [read.repair] };
    }
  }
  if (isNothing(trimmed) && tool !== undefined && takesNothing(tool)) {
    return { input: {}, repairs: [] };
  }
  const name = onlyText(tool);
  // Unbalanced closing brackets show that it was meant as JSON.
  const isRest = /[}\]]$/.test(trimmed) && !/[{[]/.test(trimmed);
  return name === undefined || isRest
    ? { problem: 'The arguments must be a JSON object.' }
    : { input: Object.fromEntries([[name, unquoted(trimmed)]]), repairs: [] };
};

const isNothing = (text: string): boolean =>
  /^[`"'(]{0,2}(?:none|nothing|empty|n\/a|no (?:input|arguments?|parameters?)(?: (?:needed|required))?)[`"').]{0,3}$/i.test(
    text,
  );

const takesNothing = ({ inputSchema: { required } }: ToolDeclaration): boolean =>
  !Array.isArray(required) || required.length === 0;

const unquoted = (text: string): string => {
  const value = text.startsWith('"') ? parsedJson(text) : text;
  return typeof value === 'string' ? value : text;
};

export const parameterOf = (
  tool: ToolDeclaration | undefined,
  name: string,
): Readonly<Record<string, unknown>> | undefined => {
  const properties = tool?.inputSchema['properties'];
  if (!isRecord(properties) || !Object.hasOwn(properties, name)) return undefined;
  const schema = properties[name];
  return isRecord(schema) ? schema : undefined;
};

const onlyText = (tool: ToolDeclaration | undefined): string | undefined => {
  const properties = tool?.inputSchema['properties'];
  const [name, second] = isRecord(properties) ? Object.keys(properties) : [];
  if (name === undefined || second !== undefined) return undefined;
  return parameterOf(tool, name)?.['type'] === 'string' ? name : undefined;
};
