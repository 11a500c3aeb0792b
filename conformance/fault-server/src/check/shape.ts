import { isRecord } from '../is-record.js';

/** Where in a body a value stands, and which unknown fields are let pass there. */
export interface Place {
  readonly path: string;
  readonly allow: readonly string[];
}

/** What a value must be: lists what is wrong with it. */
export type Shape = (value: unknown, place: Place) => readonly string[];

/** The shapes of an object's fields. */
export type Fields = Readonly<Record<string, Shape>>;

const fine: readonly string[] = [];

const must =
  (what: string, test: (value: unknown) => boolean): Shape =>
  (value, { path }) =>
    test(value) ? fine : [`Invalid value for '${path}': expected ${what}.`];

/** Anything. */
export const anything: Shape = () => fine;

/** A string. */
export const string: Shape = must('a string', (value) => typeof value === 'string');

/** A string that a pattern finds something in. */
export const matching = (
  pattern: RegExp,
  what = `a string that matches ${pattern.source}`,
): Shape => must(what, (value) => typeof value === 'string' && pattern.test(value));

/** A string that is not empty. */
export const filledString: Shape = matching(/[^]/, 'a string that is not empty');

/** A string with something to read in it. */
export const visibleString: Shape = matching(/\S/, 'a string with more than white space');

/** The name of a tool or a schema, as every vendor takes it. */
export const name: Shape = matching(/^[a-zA-Z0-9_-]{1,64}$/);

/** True or false. */
export const boolean: Shape = must('a boolean', (value) => typeof value === 'boolean');

/** A number in a range, both ends included. */
export const number = (from: number, to = Infinity): Shape =>
  must(
    `a number from ${from} to ${to}`,
    (value) => isNumber(value) && value >= from && value <= to,
  );

/** A whole number in a range, both ends included. */
export const integer = (from: number, to = Infinity): Shape =>
  must(
    `an integer from ${from} to ${to}`,
    (value) => Number.isInteger(value) && isNumber(value) && value >= from && value <= to,
  );

/** One of some strings. */
export const oneOf = (...values: readonly string[]): Shape =>
  must(`one of ${values.join(', ')}`, (value) => values.some((it) => it === value));

/** An object, whatever its fields. */
export const record: Shape = must('an object', isRecord);

/** The JSON text of an object or of anything else: not the object itself. */
export const jsonText: Shape = must('a string that holds JSON', (value) => {
  if (typeof value !== 'string') return false;
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
});

/** Null, or a value of a shape. */
export const nullable =
  (shape: Shape): Shape =>
  (value, place) =>
    value === null ? fine : shape(value, place);

/** A list of values of one shape. */
export const list =
  (shape: Shape, from = 0, to = Infinity): Shape =>
  (value, place) => {
    if (!Array.isArray(value)) return [`Invalid type for '${place.path}': expected an array.`];
    const { length } = value;
    if (length < from || length > to) {
      return [`Invalid '${place.path}': an array of ${length}, expected from ${from} to ${to}.`];
    }
    return value.flatMap((item, index) => shape(item, inside(place, `[${index}]`)));
  };

/** A string, or a list. */
export const textOr =
  (text: Shape, otherwise: Shape): Shape =>
  (value, place) =>
    (typeof value === 'string' ? text : otherwise)(value, place);

/** An object with these fields and no others. */
export const object =
  (required: Fields, optional: Fields = {}): Shape =>
  (value, place) => {
    if (!isRecord(value)) return [`Invalid type for '${place.path}': expected an object.`];
    const at = (key: string): string => inside(place, place.path === '' ? key : `.${key}`).path;
    const missing = Object.keys(required)
      .filter((key) => !isPresent(value, key))
      .map((key) => `Missing required parameter: '${at(key)}'.`);
    const wrong = Object.keys(value).flatMap((key) => {
      if (!isPresent(value, key)) return fine;
      const shape = fieldOf(required, key) ?? fieldOf(optional, key);
      if (shape !== undefined) return shape(value[key], { ...place, path: at(key) });
      return place.allow.includes(key) ? fine : [`Unknown parameter: '${at(key)}'.`];
    });
    return [...missing, ...wrong];
  };

/** An object whose shape is told by one of its fields; `otherwise` is for a value that is not listed. */
export const tagged =
  (tag: string, shapes: Fields, otherwise?: Shape): Shape =>
  (value, place) => {
    if (!isRecord(value)) return [`Invalid type for '${place.path}': expected an object.`];
    const variant = value[tag];
    const shape = (typeof variant === 'string' ? fieldOf(shapes, variant) : undefined) ?? otherwise;
    return shape === undefined
      ? oneOf(...Object.keys(shapes))(variant, inside(place, `.${tag}`))
      : shape(value, place);
  };

/** A shape of which further rules hold; they are looked at where the shape is right. */
export const also =
  (shape: Shape, ...rules: readonly Shape[]): Shape =>
  (value, place) => {
    const wrong = shape(value, place);
    return wrong.length > 0 ? wrong : rules.flatMap((rule) => rule(value, place));
  };

/** A rule in the words of its own: what must be true of an object. */
export const rule =
  (message: string, test: (value: Readonly<Record<string, unknown>>) => boolean): Shape =>
  (value, { path }) =>
    isRecord(value) && !test(value) ? [path === '' ? message : `${path}: ${message}`] : fine;

/** The place of a part of a value. */
export const inside = (place: Place, part: string): Place => ({
  ...place,
  path: `${place.path}${part}`,
});

/** Tells whether an object says something of a field. */
export const isPresent = (value: Readonly<Record<string, unknown>>, key: string): boolean =>
  Object.hasOwn(value, key) && value[key] !== undefined;

const fieldOf = (fields: Fields, key: string): Shape | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

const isNumber = (value: unknown): value is number => typeof value === 'number';
