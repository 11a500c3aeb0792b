import { isRecord } from '../json.js';
import type { ToolDeclaration } from '../model.js';
import { readJson, type Repair } from './read-json.js';
import { onlyText } from './tool-table.js';

/** The input of a tool, or why there is none. */
export type InputReading =
  | { readonly input: Readonly<Record<string, unknown>>; readonly repairs: readonly Repair[] }
  | { readonly problem: string };

/** Reads what stands for the input of a tool: an object, its JSON as a text, or the text itself where the tool takes nothing else. */
export const readInput = (value: unknown, tool: ToolDeclaration | undefined): InputReading => {
  if (value === undefined || value === null) return { input: {}, repairs: [] };
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
  // What a bracket closes that none has opened was meant as JSON.
  const isRest = /[}\]]$/.test(trimmed) && !/[{[]/.test(trimmed);
  return name === undefined || isRest
    ? { problem: 'The arguments must be a JSON object.' }
    : { input: Object.fromEntries([[name, unquoted(trimmed)]]), repairs: [] };
};

/** Tells whether words say that there are no arguments. */
const isNothing = (text: string): boolean =>
  /^[`"'(]{0,2}(?:none|nothing|empty|n\/a|no (?:input|arguments?|parameters?)(?: (?:needed|required))?)[`"').]{0,3}$/i.test(
    text,
  );

const takesNothing = ({ inputSchema: { required } }: ToolDeclaration): boolean =>
  !Array.isArray(required) || required.length === 0;

/** A text that is written as JSON is meant without its quotes. */
const unquoted = (text: string): string => {
  if (!text.startsWith('"')) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
};
