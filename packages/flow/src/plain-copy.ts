import { limits } from './limits.js';
import { type Finding, problemAt } from './problem.js';

/** A document that nobody else can change, or why it is none. */
export type PlainCopy =
  { readonly value: unknown; readonly problem?: undefined } | { readonly problem: Finding };

/** Copies a JSON value, frozen, as far as it is no larger than a document may be. Keys keep their own properties: `__proto__` is a key like any other. */
export const plainCopy = (given: unknown): PlainCopy => {
  const room = { values: limits.values, characters: limits.characters };
  const take = (text: string, path: Path | undefined): string => {
    room.characters -= text.length;
    if (room.characters < 0) {
      throw new Refused(path, `has more than ${limits.characters} characters of text`);
    }
    return text;
  };
  const copy = (value: unknown, depth: number, path?: Path): unknown => {
    room.values -= 1;
    if (room.values < 0) throw new Refused(undefined, `has more than ${limits.values} values`);
    if (depth > limits.depth) throw new Refused(path, `is nested more than ${limits.depth} deep`);
    if (typeof value === 'string') return take(value, undefined);
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    if (Array.isArray(value)) {
      if (value.length > limits.list) throw new Refused(path, `has more than ${limits.list} items`);
      return Object.freeze(
        value.map((item: unknown, key) => copy(item, depth + 1, { key, above: path })),
      );
    }
    if (typeof value === 'object') {
      const entries = Object.entries(value).filter(([, item]) => item !== undefined);
      return Object.freeze(
        Object.fromEntries(
          entries.map(([key, item]) => [
            take(key, path),
            copy(item, depth + 1, { key, above: path }),
          ]),
        ),
      );
    }
    const what = typeof value === 'number' || value === undefined ? value : `a ${typeof value}`;
    throw new Refused(path, `is ${String(what)}, which no JSON can hold`);
  };
  try {
    return { value: copy(given, 0) };
  } catch (cause) {
    if (cause instanceof Refused) return { problem: problemAt(pathOf(cause.path), cause.message) };
    return { problem: problemAt([], 'cannot be read', 'Pass what JSON.parse gives.') };
  }
};

/** Where a value is. A path that nobody asks for is not written out. */
interface Path {
  readonly key: string | number;
  readonly above: Path | undefined;
}

const pathOf = (path: Path | undefined): readonly (string | number)[] =>
  path === undefined ? [] : [...pathOf(path.above), path.key];

class Refused extends Error {
  readonly path: Path | undefined;
  constructor(path: Path | undefined, message: string) {
    super(message);
    this.path = path;
  }
}
