import { isRecord, parsedJson } from 'millrace/values';
import { MillraceError, textOf } from 'millrace';
import { limits } from './limits.js';
import { type ConversationMessage, type Item, noOutput, type Output, type Scope } from './scope.js';
import { readTemplate, type Reference, type Template } from './template.js';

/** Renders a template. Inserted values are data: `{{` in them has no meaning. */
export const render = (template: Template, scope: Scope): string =>
  joinTexts(
    template.map((part) => (typeof part === 'string' ? part : textOfValue(valueOf(part, scope)))),
  );

/** The output that a template refers to, if it is a single reference to a whole output; else its text. */
export const outputOf = (template: Template, scope: Scope): Output => {
  const [part, ...others] = template;
  if (part === undefined || typeof part === 'string' || others.length > 0) {
    return { text: render(template, scope) };
  }
  if (part.of === 'component' && part.field === 'output' && part.path.length === 0) {
    return scope.outputs.get(part.id) ?? noOutput;
  }
  const value = valueOf(part, scope);
  return typeof value === 'string' ? { text: value } : { text: textOfValue(value), value };
};

export const templateOf = (text: string): Template => readTemplate(text).template;

/** Renders all templates in a value. A template that is a single reference becomes the value itself. */
export const fill = (value: unknown, scope: Scope): unknown => {
  if (typeof value === 'string') {
    const { text, value: filled = text } = outputOf(templateOf(value), scope);
    return filled;
  }
  if (Array.isArray(value)) return value.map((item: unknown) => fill(item, scope));
  return isRecord(value) ? fillRecord(value, scope) : value;
};

/** Renders all templates in the values of an object. Keys are not templates. */
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
      return sys.history.map(formatMessage).join('\n');
    case 'metadata':
      return Object.hasOwn(sys.metadata, reference.key) ? sys.metadata[reference.key] : '';
    case 'variable':
      return valueAt(scope.variables.get(reference.name)?.value, reference.path);
    case 'secret':
      // Only HTTP components resolve secrets, when they send a request.
      return '';
    case 'component':
      return componentValue(reference, items.get(reference.id), outputs.get(reference.id));
  }
};

const componentValue = (
  { field, path }: Extract<Reference, { of: 'component' }>,
  item: Item | undefined,
  output = noOutput,
): unknown => {
  switch (field) {
    case 'index':
      return item?.index;
    case 'item':
      return valueAt(item?.value, path);
    case 'previous':
      return valueAt((item?.rounds ?? output.loop?.rounds)?.at(-1), path);
    case 'rounds':
      return valueAt(item?.rounds ?? output.loop?.rounds, path);
    case 'done':
      return output.loop?.done;
    case 'error':
      return valueAt(output.error, path);
    case 'output': {
      const { text, value = text } = output;
      return path.length === 0 ? text : valueAt(value, path);
    }
  }
};

const formatMessage = (message: ConversationMessage): string =>
  `${message.role}: ${textOf(message)}`;

/** Follows a path of own keys. Strings on the way are parsed as JSON. */
export const valueAt = (value: unknown, path: readonly string[]): unknown => {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const whole: unknown = typeof value === 'string' ? parsedJson(value) : value;
  if (Array.isArray(whole)) {
    return /^\d{1,9}$/u.test(key) ? valueAt(whole[Number(key)], rest) : undefined;
  }
  return isRecord(whole) && Object.hasOwn(whole, key) ? valueAt(whole[key], rest) : undefined;
};

/** Joins texts, unless the result is too long: in a loop, text that contains itself grows exponentially. */
export const joinTexts = (texts: readonly string[], separator = ''): string => {
  const length = texts.reduce((sum, text) => sum + text.length + separator.length, 0);
  if (texts.length > 1) checkSize(length, limits.text);
  return texts.join(separator);
};

export const checkSize = (size: number, max: number): void => {
  if (size <= max) return;
  throw new MillraceError('tooLarge', `Its texts or values have more than ${max} characters.`);
};

/** Throws for a value whose JSON is too long. It is measured before, as lists that contain themselves twice explode. */
export const checkValue = (value: unknown): void => {
  checkSize(sizeOf(value, 0), limits.text);
};

/** The length of the JSON, about, and at least 16 for each value; counting ends at the limit. */
const sizeOf = (value: unknown, before: number): number => {
  const size = before + (typeof value === 'string' ? value.length : 0) + 16;
  return typeof value === 'object' && value !== null && size <= limits.text
    ? Object.entries(value).reduce((sum, [key, it]) => sizeOf(it, sum + key.length), size)
    : size;
};

const textOfValue = (value: unknown): string => {
  if (typeof value !== 'string') checkValue(value);
  return asText(value);
};

/** Converts a value to text: a string as it is, other values as JSON, and missing or unserializable values as `''`. */
export const asText = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  const json: unknown = JSON.stringify(value);
  return typeof json === 'string' ? json : '';
};
