import { isObjectOrList, isRecord } from './json.js';
import type { JsonSchema, Path } from './schema.js';

/** Reads from the keywords of a JSON Schema what it admits. Anything that cannot be decided counts as admitted. */
export interface Admission {
  /** Whether a value of this type may be valid. */
  readonly type: (schema: unknown, type: JsonType) => boolean;
  /** The schema of a key of an object, or of an item of an array. */
  readonly at: (schema: unknown, key: string) => unknown;
  /** Whether the schema names a key that valid objects may omit. */
  readonly isOptional: (schema: unknown, key: string) => boolean;
  /** The schema with those alternatives only that an object, by its keys and constants, may mean. */
  readonly narrowed: (schema: unknown, value: Readonly<Record<string, unknown>>) => unknown;
}

type JsonType = 'null' | 'string' | 'object' | 'array';

/** Schemas that refer to themselves can take exponential time. Beyond these limits, everything is admitted. */
const mostParts = 100_000;
const mostNested = 300;

export const admissionOf = (root: JsonSchema): Admission => {
  let left = mostParts;
  let nested = 0;
  const resolved = (schema: unknown): unknown => {
    const ref = isRecord(schema) ? schema['$ref'] : undefined;
    return typeof ref === 'string' ? pointed(root, ref) : undefined;
  };
  /** Reads the keywords of a schema; `unknown` if it has none or the limits are reached. */
  const read = <T>(schema: unknown, unknown: T, keywords: (schema: JsonSchema) => T): T => {
    if (!isRecord(schema) || left <= 0 || nested > mostNested) return unknown;
    left -= 1;
    nested += 1;
    try {
      return keywords(schema);
    } finally {
      nested -= 1;
    }
  };
  const all = (schema: JsonSchema, holds: (part: unknown) => boolean): boolean =>
    asList(schema['allOf']).every(holds) &&
    unionsOf(schema).every((union) => union.some(holds)) &&
    holds(resolved(schema));
  const type = (given: unknown, wanted: JsonType): boolean =>
    read(given, given !== false, (schema) => {
      if ('const' in schema && typeOf(schema['const']) !== wanted) return false;
      const { enum: values, type: types, nullable } = schema;
      if (Array.isArray(values) && !values.some((it) => typeOf(it) === wanted)) return false;
      const isListed = types === undefined || [types].flat().includes(wanted);
      if (!isListed && (wanted !== 'null' || nullable !== true)) return false;
      return all(schema, (part) => type(part, wanted));
    });
  const at = (given: unknown, key: string): unknown =>
    read<unknown>(given, true, (schema) => {
      const part = (it: unknown): unknown => at(it, key);
      const parts = [
        ownAt(schema, key),
        ...asList(schema['allOf']).map(part),
        ...unionsOf(schema).map((union) => anyOf(union.map(part))),
        part(resolved(schema)),
      ].filter((it) => it !== true);
      return parts.length > 1 ? { allOf: parts } : (parts[0] ?? true);
    });
  const isNamed = (given: unknown, key: string): boolean =>
    read(given, false, (schema) => {
      const { properties } = schema;
      if (isRecord(properties) && Object.hasOwn(properties, key)) return true;
      const parts = [...asList(schema['allOf']), ...unionsOf(schema).flat(), resolved(schema)];
      return parts.some((part) => isNamed(part, key));
    });
  const isRequired = (given: unknown, key: string): boolean =>
    read(given, false, (schema) => {
      const requires = (part: unknown): boolean => isRequired(part, key);
      return (
        asList(schema['required']).includes(key) ||
        [...asList(schema['allOf']), resolved(schema)].some(requires) ||
        unionsOf(schema).some((union) => union.every(requires))
      );
    });
  /** Whether the constants of a schema allow a scalar. */
  const allows = (given: unknown, item: unknown): boolean =>
    read(given, given !== false, (schema) => {
      if ('const' in schema && schema['const'] !== item) return false;
      const { enum: values } = schema;
      if (Array.isArray(values) && !values.includes(item)) return false;
      return all(schema, (part) => allows(part, item));
    });
  const isMeant = (schema: unknown, value: Readonly<Record<string, unknown>>): boolean =>
    type(schema, 'object') &&
    Object.entries(value).every(
      ([key, item]) => isObjectOrList(item) || item === null || allows(at(schema, key), item),
    ) &&
    [schema, resolved(schema)]
      .flatMap((it) => (isRecord(it) ? asList(it['required']) : []))
      .every((key) => Object.hasOwn(value, String(key)));
  const narrowed: Admission['narrowed'] = (given, value) =>
    read<unknown>(given, given, (schema) => {
      const { $ref: _, anyOf: __, oneOf: ___, allOf, ...own } = schema;
      const target = resolved(schema);
      const parts = [...asList(allOf), ...(target === undefined ? [] : [target])];
      const unions = unionsOf(schema).map((union) => {
        const meant = union.filter((part) => isMeant(part, value));
        return anyOf((meant.length > 0 ? meant : union).map((part) => narrowed(part, value)));
      });
      if (parts.length + unions.length === 0) return schema;
      return { ...own, allOf: [...parts.map((part) => narrowed(part, value)), ...unions] };
    });
  return {
    type,
    at,
    narrowed,
    isOptional: (schema, key) => isNamed(schema, key) && !isRequired(schema, key),
  };
};

/** Whether a value at this place of an input may be a string. */
export const admitsString = (root: JsonSchema, path: Path): boolean => {
  const { at, type } = admissionOf(root);
  const inside = (schema: unknown, key: string): unknown =>
    (type(schema, 'object') || type(schema, 'array')) && at(schema, key);
  return type(path.reduce<unknown>(inside, root), 'string');
};

/** Copies an input without the nulls at optional keys whose schema forbids null; the input itself if it has none. */
export const withoutForbiddenNulls = (input: unknown, root: JsonSchema): unknown => {
  const { type, at, isOptional, narrowed } = admissionOf(root);
  const copy = (value: unknown, schema: unknown): unknown => {
    if (Array.isArray(value)) {
      const items = value.map((item: unknown, index) => copy(item, at(schema, String(index))));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isRecord(value)) return value;
    const meant = narrowed(schema, value);
    const isForbidden = (key: string): boolean =>
      isOptional(meant, key) && !type(at(meant, key), 'null');
    const entries = Object.entries(value)
      .filter(([key, item]) => item !== null || !isForbidden(key))
      .map(([key, item]) => [key, copy(item, at(meant, key))] as const);
    const isSame =
      entries.length === Object.keys(value).length &&
      entries.every(([key, item]) => item === value[key]);
    return isSame ? value : Object.fromEntries(entries);
  };
  return copy(input, root);
};

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const unionsOf = ({ anyOf: any, oneOf: one }: JsonSchema): readonly (readonly unknown[])[] =>
  [any, one].filter(Array.isArray);

const anyOf = (parts: readonly unknown[]): unknown =>
  parts.some((part) => part === true) ? true : { anyOf: parts };

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;

const ownAt = (schema: JsonSchema, key: string): unknown => {
  const { properties, patternProperties, additionalProperties, prefixItems, items } = schema;
  if (isRecord(properties) && Object.hasOwn(properties, key)) return properties[key];
  const isIndex = /^\d+$/.test(key);
  if (isIndex && Array.isArray(prefixItems) && Number(key) < prefixItems.length) {
    return prefixItems[Number(key)];
  }
  if (isIndex && Array.isArray(items)) return items[Number(key)] ?? true;
  if (isIndex && items !== undefined) return items;
  return isRecord(patternProperties) ? true : (additionalProperties ?? true);
};

/** Resolves a reference within the schema; one that leads elsewhere is unknown. */
const pointed = (root: JsonSchema, ref: string): unknown => {
  if (!ref.startsWith('#')) return undefined;
  if (ref !== '#' && !ref.startsWith('#/')) return undefined;
  return ref
    .split('/')
    .slice(1)
    .map((part) => decoded(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (from, key) =>
        (isRecord(from) || Array.isArray(from)) && Object.hasOwn(from, key)
          ? Reflect.get(from, key)
          : undefined,
      root,
    );
};

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};
