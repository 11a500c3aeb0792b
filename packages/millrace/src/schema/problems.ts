import type { ErrorObject, FuncKeywordDefinition, SchemaValidateFunction } from 'ajv';
import { isPlain } from '../values/plain-json.js';
import { brief, maxMessage, type Problem } from '../values/schema.js';

/** Returns the problems of an input; empty if it is valid. */
export type Check = (input: unknown) => readonly Problem[];

export const tooIntricate: readonly Problem[] = [{ path: [], message: 'is too complex to check' }];

export const ofError = ({
  instancePath,
  keyword,
  params,
  message,
  data,
}: Omit<ErrorObject, 'schemaPath'>): Problem => {
  const path = instancePath.split('/').slice(1).map(unescaped);
  if (keyword === 'required') {
    return {
      path: [...path, String(params['missingProperty'])],
      message: 'is required, but missing',
    };
  }
  const allowed = keyword === 'enum' ? `: ${brief(params['allowedValues'], maxMessage)}` : '';
  return { path, message: `${message ?? keyword}${allowed}`, received: data };
};

export const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

/** `uniqueItems` in one pass over a list: that of ajv compares each item with every other, unless all are scalars. */
export const uniqueItems = (): FuncKeywordDefinition => {
  const validate: SchemaValidateFunction = (isAsked: boolean, items: readonly unknown[]) => {
    const found = isAsked ? duplicateIn(items) : undefined;
    if (found !== undefined) validate.errors = [found];
    return found === undefined;
  };
  return { keyword, type: 'array', schemaType: 'boolean', errors: true, validate };
};

const keyword = 'uniqueItems';

/** The error of ajv for the last pair. */
export const duplicateIn = (items: readonly unknown[]) => {
  const canonical = canonicalForm();
  const places = new Map<string, number>();
  let params: { readonly i: number; readonly j: number } | undefined;
  for (const [i, item] of items.entries()) {
    const form = canonical(item);
    const j = places.get(form);
    if (j !== undefined) params = { i, j };
    places.set(form, i);
  }
  if (params === undefined) return undefined;
  const message = `must NOT have duplicate items (items ## ${params.j} and ${params.i} are identical)`;
  return { keyword, message, params };
};

/** Converts values that are equal in JSON to the same string, regardless of key order. Other values only equal themselves. */
const canonicalForm = (): ((value: unknown) => string) => {
  const names = new Map<unknown, string>();
  const nameOf = (value: unknown): string => {
    const name = names.get(value) ?? `#${names.size}`;
    names.set(value, name);
    return name;
  };
  const write = (value: unknown, above: readonly object[]): string => {
    if (!isPlain(value)) return isScalar(value) ? JSON.stringify(value) : nameOf(value);
    if (above.includes(value)) return nameOf(value);
    const path = [...above, value];
    if (Array.isArray(value)) return `[${value.map((item) => write(item, path)).join()}]`;
    const fields = Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${write(Reflect.get(value, key), path)}`);
    return `{${fields.join()}}`;
  };
  return (value) => write(value, []);
};

const isScalar = (value: unknown): boolean =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  Number.isFinite(value);
