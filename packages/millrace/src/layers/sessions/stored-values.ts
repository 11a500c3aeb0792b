import { messageOf, MillraceError } from '../../values/errors.js';
import { isRecord, isTooDeep } from '../../values/json.js';
import { jsonCopy } from './session-state.js';

/** The place of a value in a state. `isForeign`: the state comes from outside. */
export interface Location {
  readonly path: string;
  readonly isForeign: boolean;
}

/** Checks a value of a state and returns a copy of it. Throws `invalidState`. */
export type Reader<T> = (value: unknown, place: Location) => T;

export const invalid = ({ path }: Location, what: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state cannot be used: ${path === '' ? 'it' : `'${path}'`} ${what}.`,
  );

export const objectOf =
  <T extends object>(
    fields: { readonly [Name in keyof T]-?: Reader<Exclude<T[Name], undefined>> },
    ...optional: readonly (keyof T)[]
  ): Reader<T> =>
  (value, place) => {
    const known = Object.entries<Reader<unknown>>(fields);
    const at = fieldsOf(
      value,
      place,
      known.map(([name]) => name),
    );
    const read = known.flatMap(([name, readField]) => {
      const field = ownField(value, name);
      if (field !== undefined) return [[name, readField(field, at(name))] as const];
      if (optional.some((other) => other === name)) return [];
      throw invalid(at(name), 'is missing');
    });
    // Omits fields without a value, such as tool details that are not JSON.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return Object.fromEntries(read.filter(([, field]) => field !== undefined)) as T;
  };

export const fieldsOf = (
  value: unknown,
  place: Location,
  known: readonly string[],
): ((name: string) => Location) => {
  if (!isRecord(value)) throw invalid(place, `must be an object, not ${kindOf(value)}`);
  const at = (name: string): Location => ({
    ...place,
    path: place.path === '' ? name : `${place.path}.${name}`,
  });
  const unknown = place.isForeign && Object.keys(value).find((name) => !known.includes(name));
  if (typeof unknown === 'string') {
    throw invalid(at(truncated(unknown)), `is unknown. Known fields: ${known.join(', ')}`);
  }
  return at;
};

export const listOf =
  <T>(read: Reader<T>, most: number): Reader<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw invalid(place, `must be a list, not ${kindOf(value)}`);
    const items: readonly unknown[] = value;
    if (place.isForeign && items.length > most) {
      throw invalid(place, `has ${items.length} entries: the limit is ${most}`);
    }
    return Array.from(items, (item, index) =>
      read(item, { ...place, path: `${place.path}[${index}]` }),
    );
  };

export const text: Reader<string> = (value, place) => {
  if (typeof value === 'string') return value;
  throw invalid(place, `must be a string, not ${kindOf(value)}`);
};

const maxNameLength = 10_000;

export const name: Reader<string> = (value, place) => {
  const read = text(value, place);
  if (read === '') throw invalid(place, 'is empty');
  if (place.isForeign && read.length > maxNameLength) {
    throw invalid(place, `has ${read.length} characters: the limit is ${maxNameLength}`);
  }
  return read;
};

export const flag: Reader<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw invalid(place, `must be true or false, not ${kindOf(value)}`);
};

export const count: Reader<number> = (value, place) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw invalid(
    place,
    `must be a non-negative number, not ${typeof value === 'number' ? value : kindOf(value)}`,
  );
};

export const unique = <T>(
  items: readonly T[],
  idOf: (item: T) => string,
  place: Location,
): readonly T[] => {
  const seen = new Set<string>();
  const duplicate = items.find((item) => seen.size === seen.add(idOf(item)).size);
  if (duplicate === undefined) return items;
  throw invalid(place, `holds the id '${truncated(idOf(duplicate))}' twice`);
};

export const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

const truncated = (key: string): string => (key.length > 60 ? `${key.slice(0, 60)}…` : key);

export const oneOfThe =
  <const T extends readonly unknown[]>(...values: T): Reader<T[number]> =>
  (value, place) => {
    const found = values.find((it) => it === value);
    if (found === undefined) throw invalid(place, `must be one of ${values.join(', ')}`);
    return found;
  };

export const exactly =
  <const T extends string | number>(value: T): Reader<T> =>
  () =>
    value;

export const ofType =
  <T>(type: string, read: Reader<T>): Reader<T> =>
  (value, place) => {
    if (!isRecord(value) || ownField(value, 'type') === type) return read(value, place);
    throw invalid(place, `must be of the type '${type}'`);
  };

export const ownField = (value: unknown, field: string): unknown =>
  isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined;

export const json: Reader<unknown> = (value, place) => {
  if (isTooDeep(value)) throw invalid(place, 'is nested more than 100 levels deep');
  if (place.isForeign) rejectHostile(value, place);
  try {
    return jsonCopy(value) ?? null;
  } catch (cause) {
    throw invalid(place, `cannot be represented as JSON: ${messageOf(cause)}`);
  }
};

export const jsonObject: Reader<Readonly<Record<string, unknown>>> = (value, place) => {
  const copy = isRecord(value) ? json(value, place) : undefined;
  if (isRecord(copy)) return copy;
  throw invalid(place, 'must be an object');
};

const rejectHostile = (value: unknown, place: Location): void => {
  if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      if (key === '__proto__') throw invalid(place, "has a key '__proto__'");
      rejectHostile(part, place);
    }
  } else if (
    !['string', 'boolean', 'undefined'].includes(typeof value) &&
    value !== null &&
    !Number.isFinite(value)
  ) {
    throw invalid(place, `holds a ${typeof value}, which JSON cannot represent`);
  }
};
