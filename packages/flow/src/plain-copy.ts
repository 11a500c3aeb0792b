import { limits } from './limits.js';
import { type Finding, problemAt } from './problem.js';

/** An immutable copy of a JSON value, or the reason why there is no copy. */
export type PlainCopy =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: Finding };

/** Creates a frozen copy of a JSON value within the limits of a document. `__proto__` becomes an own property. */
export const plainCopy = (given: unknown): PlainCopy => {
  const room = { values: limits.values, characters: limits.characters };
  const count = (text: string, path: Path | undefined): string => {
    room.characters -= text.length;
    if (room.characters < 0) {
      throw new InvalidValue(path, `has more than ${limits.characters} characters of text`);
    }
    return text;
  };
  const copy = (value: unknown, depth: number, path?: Path): unknown => {
    room.values -= 1;
    if (room.values < 0) throw new InvalidValue(undefined, `has more than ${limits.values} values`);
    if (depth > limits.depth)
      throw new InvalidValue(path, `is nested more than ${limits.depth} deep`);
    if (typeof value === 'string') return count(value, undefined);
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    if (Array.isArray(value)) {
      if (value.length > limits.list)
        throw new InvalidValue(path, `has more than ${limits.list} items`);
      return Object.freeze(
        value.map((item: unknown, key) => copy(item, depth + 1, { key, above: path })),
      );
    }
    if (typeof value === 'object') {
      const entries = Object.entries(value).filter(([, item]) => item !== undefined);
      return Object.freeze(
        Object.fromEntries(
          entries.map(([key, item]) => [
            count(key, path),
            copy(item, depth + 1, { key, above: path }),
          ]),
        ),
      );
    }
    const what = typeof value === 'number' || value === undefined ? value : `a ${typeof value}`;
    throw new InvalidValue(path, `is ${String(what)}, which is not valid JSON`);
  };
  try {
    return { value: copy(given, 0) };
  } catch (cause) {
    if (cause instanceof InvalidValue)
      return { problem: problemAt(pathOf(cause.path), cause.message) };
    return { problem: problemAt([], 'cannot be read', 'Pass the result of JSON.parse.') };
  }
};

/** The path of a value as a linked list, which is only flattened for a problem. */
interface Path {
  readonly key: string | number;
  readonly above: Path | undefined;
}

const pathOf = (path: Path | undefined): readonly (string | number)[] =>
  path === undefined ? [] : [...pathOf(path.above), path.key];

class InvalidValue extends Error {
  readonly path: Path | undefined;
  constructor(path: Path | undefined, message: string) {
    super(message);
    this.path = path;
  }
}
