import { isMillraceError, messageOf } from './errors.js';
import { isObjectOrList, isRecord } from './json.js';

/** JSON of a value, and the parts of it that JSON cannot express. */
export interface PlainJson {
  readonly json: string;
  /** Such as `onClick: a function`; empty if the JSON has everything. */
  readonly lost: readonly string[];
}

/**
 * Converts any value to JSON. Maps become objects or lists of pairs, sets and numeric arrays lists, bytes base64, errors
 * their names and messages, bigints and numbers such as NaN become strings. Throws for cycles, and the error of a getter.
 */
export const toPlainJson = (value: unknown): PlainJson => {
  const lost: string[] = [];
  const json: unknown = JSON.stringify(value, plainParts(lost));
  if (typeof json === 'string') return { json, lost };
  return { json: JSON.stringify(`(a ${typeof value})`), lost: [] };
};

/** A replacer for `JSON.stringify`. It must be a function, whose `this` holds the value before `toJSON`. */
export const plainParts = (lost: string[] = []) =>
  function (this: unknown, key: string, value: unknown): unknown {
    const given: unknown = isObjectOrList(this) ? Reflect.get(this, key) : value;
    const lose = (what: string): string => {
      lost.push(key === '' ? what : `${key}: ${what}`);
      return `(${what})`;
    };
    switch (typeof value) {
      case 'bigint':
        return String(value);
      case 'number':
        return Number.isFinite(value) ? value : String(value);
      case 'function':
      case 'symbol':
        if (key !== '') lose(`a ${typeof value}`);
        return value;
      case 'string':
        return isObjectOrList(given) && kindOf(given) !== 'Date'
          ? (ofKind(given, lose) ?? value)
          : value;
      case 'object':
        if (!isObjectOrList(given)) return value;
        return ofKind(given, lose) ?? (value === given ? ofClass(given, lose) : value);
      default:
        return value;
    }
  };

/** The plain form of an object, for JSON whose losses need no report. */
export const plainPart = (value: object): unknown => {
  const lose = (what: string): string => `(${what})`;
  return ofKind(value, lose) ?? ofClass(value, lose);
};

export const isPlain = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** A replacer for the JSON of events, as journals record them: without the stacks and causes of errors. */
export const eventPart = (_key: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return String(value);
  if (!isMillraceError(value))
    return isObjectOrList(value) && !isPlain(value) ? plainPart(value) : value;
  const { code, message, retryable, userMessage, status, requestId } = value;
  return { code, message, retryable, userMessage, status, requestId };
};

/** Stands for a value of an event that has no JSON. */
export const unwritable = '(not representable in JSON)';

const kindOf = (value: object): string => Object.prototype.toString.call(value).slice(8, -1);

/** The plain form of a built-in object; those of other realms have no common class. */
const ofKind = (value: object, lose: (what: string) => string): unknown => {
  if (isError(value)) return ofError(value);
  if (ArrayBuffer.isView(value)) return ofView(value);
  switch (kindOf(value)) {
    case 'Map':
      return value instanceof Map ? ofMap(value) : undefined;
    case 'Set':
      return value instanceof Set ? [...value] : undefined;
    case 'Date':
      return value instanceof Date && Number.isNaN(value.getTime()) ? 'Invalid Date' : undefined;
    case 'ArrayBuffer':
    case 'SharedArrayBuffer':
      return value instanceof ArrayBuffer ? ofBytes(new Uint8Array(value)) : undefined;
    case 'Boolean':
      return value.valueOf();
    case 'Number':
      return Number.isFinite(value.valueOf()) ? value.valueOf() : asText(value);
    case 'Promise':
      return lose('a Promise that was not awaited');
    default:
      return undefined;
  }
};

const ofMap = (map: ReadonlyMap<unknown, unknown>): unknown => {
  const entries = [...map];
  const isNamed = entries.every(([key]) => typeof key === 'string');
  return isNamed ? Object.fromEntries(entries) : entries;
};

const ofView = (view: ArrayBufferView): unknown => {
  const isList = Symbol.iterator in view && !kindOf(view).startsWith('Uint8');
  return isList && isIterable(view)
    ? [...view]
    : ofBytes(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
};

const ofBytes = (bytes: Uint8Array): { readonly base64: string } => {
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += 8_192) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + 8_192)));
  }
  return { base64: btoa(parts.join('')) };
};

/** Without its stack and other fields, which may hold secrets. */
const ofError = (error: Error): object => {
  const { name, message, cause } = error;
  const code: unknown = Reflect.get(error, 'code');
  const errors: unknown = Reflect.get(error, 'errors');
  return {
    name,
    message,
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(cause !== undefined && { cause: isError(cause) ? cause : messageOf(cause) }),
    ...(Array.isArray(errors) && errors.every(isError) && { errors }),
  };
};

/** Whether a value is an error, of any realm. */
export const isError = (value: unknown): value is Error =>
  value instanceof Error ||
  (isObjectOrList(value) && kindOf(value) === 'Error' && 'message' in value);

/** An instance without fields of its own, which JSON would show as `{}`. */
const ofClass = (value: object, lose: (what: string) => string): unknown => {
  const prototype: unknown = Object.getPrototypeOf(value);
  const arePlain =
    prototype === null || (isObjectOrList(prototype) && Object.getPrototypeOf(prototype) === null);
  if (arePlain || Array.isArray(value) || Object.keys(value).length > 0) return value;
  const text = asText(value);
  if (!text.startsWith('[object ')) return text;
  if (isIterable(value) && !('next' in value)) return ofIterable(value);
  const { constructor } = value;
  const name = typeof constructor === 'function' ? constructor.name : '';
  return lose(`a ${name === '' ? 'class instance' : name} without fields`);
};

const asText: (value: unknown) => string = String;

const mostItems = 100_000;

const ofIterable = (value: Iterable<unknown>): unknown => {
  const items: unknown[] = [];
  for (const item of value) {
    items.push(item);
    if (items.length >= mostItems) break;
  }
  return items;
};

const isIterable = (value: object): value is Iterable<unknown> =>
  Symbol.iterator in value && typeof value[Symbol.iterator] === 'function';

/** Whether a value is a record without fields but these. */
export const hasOnly = (value: unknown, names: readonly string[]): boolean =>
  isRecord(value) && Object.keys(value).every((name) => names.includes(name));
