import { isRecord, parsedJson } from '@millrace/core/adapter';
import { textOf } from '@millrace/core';
import { noOutput, type Output, type Scope, type Spoken } from './scope.js';
import { readTemplate, type Reference, type Template } from './template.js';

/** Fills a template. What it is filled with is data: a `{{` in it means nothing. */
export const render = (template: Template, scope: Scope): string =>
  template.map((part) => (typeof part === 'string' ? part : asText(valueOf(part, scope)))).join('');

/** The output of a template: that of what it names, where it is one reference alone and that is a whole output; else a text. */
export const outputOf = (template: Template, scope: Scope): Output => {
  const [part, ...others] = template;
  if (part === undefined || typeof part === 'string' || others.length > 0) {
    return { text: render(template, scope) };
  }
  if (part.of === 'component' && part.field === 'output' && part.path.length === 0) {
    return scope.outputs.get(part.id) ?? noOutput;
  }
  const value = valueOf(part, scope);
  return typeof value === 'string' ? { text: value } : { text: asText(value), value };
};

/** Reads a text of a document as a template: it has been checked. */
export const templateOf = (text: string): Template => readTemplate(text).template;

/** Fills all templates in a value. One that is a reference alone becomes the value that it names. */
const fill = (value: unknown, scope: Scope): unknown => {
  if (typeof value === 'string') {
    const { text, value: filled = text } = outputOf(templateOf(value), scope);
    return filled;
  }
  if (Array.isArray(value)) return value.map((item: unknown) => fill(item, scope));
  return isRecord(value) ? fillRecord(value, scope) : value;
};

/** Fills all templates in an object. Its keys are none. */
export const fillRecord = (
  record: Readonly<Record<string, unknown>>,
  scope: Scope,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(record).map(([key, item]) => [key, fill(item, scope)]));

const valueOf = (reference: Reference, scope: Scope): unknown => {
  const { sys, items, outputs } = scope;
  switch (reference.of) {
    case 'query':
      return sys.query;
    case 'session_id':
      return sys.sessionId;
    case 'history':
      return sys.history.map(said).join('\n');
    case 'metadata':
      return Object.hasOwn(sys.metadata, reference.key) ? sys.metadata[reference.key] : '';
    case 'component': {
      const { id, field, path } = reference;
      const item = items.get(id);
      if (field === 'index') return item?.index;
      if (field === 'item') return valueAt(item?.value, path);
      const { text, value = text } = outputs.get(id) ?? noOutput;
      return path.length === 0 ? text : valueAt(value, path);
    }
  }
};

const said = (message: Spoken): string => `${message.role}: ${textOf(message)}`;

/** Follows a path by own keys alone. A text on the way is read as the JSON that it is. */
const valueAt = (value: unknown, path: readonly string[]): unknown => {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const whole: unknown = typeof value === 'string' ? parsedJson(value) : value;
  if (Array.isArray(whole)) {
    return /^\d{1,9}$/u.test(key) ? valueAt(whole[Number(key)], rest) : undefined;
  }
  return isRecord(whole) && Object.hasOwn(whole, key) ? valueAt(whole[key], rest) : undefined;
};

/** A value as a text: what is not there, or JSON cannot hold, is empty; what is no text is JSON. */
export const asText = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  const json: unknown = JSON.stringify(value);
  return typeof json === 'string' ? json : '';
};
