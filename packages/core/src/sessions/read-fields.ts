import { MillraceError } from '../errors.js';
import { isRecord } from '../json.js';

/** Where a value stands in a state. */
export interface Place {
  /** Such as `messages[3].content`. */
  readonly path: string;
  /** Whether the value comes from outside: nothing is left out of it then, what is not known is refused. */
  readonly isForeign: boolean;
}

/** Reads a value, or throws an `invalidState` error that says what is wrong, and where. */
export type Read<T> = (value: unknown, place: Place) => T;

/** The fields of an object, each of which is its own. */
export interface Fields {
  has(name: string): boolean;
  read<T>(name: string, read: Read<T>): T;
}

/** Says what is wrong with a state, and where. */
export const wrong = ({ path }: Place, what: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state cannot be used: ${path === '' ? 'it' : `'${path}'`} ${what}.`,
  );

/** Looks at the own fields of an object, and refuses those that there are not. */
export const fieldsOf = (value: unknown, place: Place, known: readonly string[]): Fields => {
  if (!isRecord(value)) throw wrong(place, `must be an object, not ${kindOf(value)}`);
  const at = (name: string): Place => ({
    ...place,
    path: place.path === '' ? name : `${place.path}.${name}`,
  });
  const unknown = place.isForeign && Object.keys(value).find((name) => !known.includes(name));
  if (typeof unknown === 'string') {
    throw wrong(at(shortened(unknown)), `is not known. There are: ${known.join(', ')}`);
  }
  const has = (name: string): boolean => Object.hasOwn(value, name) && value[name] !== undefined;
  return {
    has,
    read: (name, read) => {
      if (!has(name)) throw wrong(at(name), 'is missing');
      return read(value[name], at(name));
    },
  };
};

/** Reads a list of at most so many. */
export const listOf =
  <T>(read: Read<T>, most: number): Read<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw wrong(place, `must be a list, not ${kindOf(value)}`);
    const items: readonly unknown[] = value;
    if (place.isForeign && items.length > most) {
      throw wrong(place, `has ${items.length} entries: more than ${most} are not taken`);
    }
    return Array.from(items, (item, index) =>
      read(item, { ...place, path: `${place.path}[${index}]` }),
    );
  };

export const text: Read<string> = (value, place) => {
  if (typeof value === 'string') return value;
  throw wrong(place, `must be a text, not ${kindOf(value)}`);
};

/** Longer than any id that is meant as one. */
const longestName = 10_000;

/** Reads an id or a name. */
export const name: Read<string> = (value, place) => {
  const read = text(value, place);
  if (read === '') throw wrong(place, 'is empty');
  if (place.isForeign && read.length > longestName) {
    throw wrong(place, `has ${read.length} characters: more than ${longestName} are not taken`);
  }
  return read;
};

export const flag: Read<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw wrong(place, `must be true or false, not ${kindOf(value)}`);
};

/** Reads a number from 0. */
export const count: Read<number> = (value, place) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw wrong(
    place,
    `must be a number from 0, not ${typeof value === 'number' ? value : kindOf(value)}`,
  );
};

/** Refuses a list in which two have the same id. */
export const distinct = <T>(
  items: readonly T[],
  idOf: (item: T) => string,
  place: Place,
): readonly T[] => {
  const seen = new Set<string>();
  const twice = items.find((item) => seen.size === seen.add(idOf(item)).size);
  if (twice === undefined) return items;
  throw wrong(place, `holds the id '${shortened(idOf(twice))}' twice`);
};

/** Names the kind of a value, and shows none of it: a state is a user's own. */
export const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

const shortened = (key: string): string => (key.length > 60 ? `${key.slice(0, 60)}…` : key);
