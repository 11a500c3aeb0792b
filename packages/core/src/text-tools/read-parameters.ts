import equal from 'fast-deep-equal';
import { isTooDeep, parsedJson } from '../json.js';
import type { ToolDeclaration } from '../model.js';
import { readNamed, type ReadingNeeds } from './read-entry.js';
import { type Reading, unreadable } from './reading.js';
import { parameterOf } from './tool-table.js';

/** Reads arguments that stand in tags: `<parameter=city>Rome</parameter>`. */
export const readParameters = (name: string, text: string, needs: ReadingNeeds): Reading => {
  const tool = needs.tools.get(name);
  const input = new Map<string, unknown>();
  let at = 0;
  const pattern = /\s*<parameter=([^<>\n]{1,100})>/gy;
  for (;;) {
    pattern.lastIndex = at;
    const [lead, given] = pattern.exec(text) ?? [];
    if (lead === undefined || given === undefined) break;
    const key = given.trim();
    const end = text.indexOf('</parameter>', at + lead.length);
    if (end < 0) return unreadable(`The parameter '${key}' is not closed.`, name);
    const read = readParameter(text.slice(at + lead.length, end), key, tool);
    if (read === undefined) return unreadable(`The parameter '${key}' is no JSON.`, name);
    if (input.has(key) && !equal(input.get(key), read.value)) {
      return unreadable(`The parameter '${key}' is there twice.`, name);
    }
    input.set(key, read.value);
    at = end + '</parameter>'.length;
  }
  return text.slice(at).trim() === ''
    ? readNamed(name, Object.fromEntries(input), needs)
    : unreadable('There is text between the parameters.', name);
};

/** A text stays one; all else is JSON. */
const readParameter = (
  written: string,
  key: string,
  tool: ToolDeclaration | undefined,
): { readonly value: unknown } | undefined => {
  const text = written.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
  const schema = parameterOf(tool, key);
  if (schema?.['type'] === 'string') return { value: text };
  const value = parsedJson(text);
  if (value !== undefined && !isTooDeep(value)) return { value };
  const types = schema === undefined ? ['string'] : [schema['type']].flat();
  return types.includes('string') ? { value: text } : undefined;
};
