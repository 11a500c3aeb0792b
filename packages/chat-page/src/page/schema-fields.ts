import { type Fields, fieldsOf, isFields, listOf, parsedJson, textOf, wordsOf } from './fields.js';

/** A field of a form, made from a JSON Schema. */
export interface Field {
  readonly kind: 'text' | 'number' | 'flag' | 'choice' | 'choices' | 'group' | 'json';
  /** Its property; empty for the value as a whole. */
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly isRequired: boolean;
  /** The type of its input, or several lines, for a string. */
  readonly input?: 'text' | 'lines' | 'email' | 'url' | 'date';
  readonly options: readonly { readonly label: string; readonly value: unknown }[];
  readonly fields: readonly Field[];
  readonly schema: Fields;
}

/** The entry of a field: its text, the indexes of its options, or the entries of a group by name. */
export type Entry = string | boolean | readonly number[] | { readonly [name: string]: Entry };

/** The question of a suspended tool, and the schema of its answer. */
export interface AskedOfUser {
  readonly question?: string;
  readonly schema?: Fields;
  /** The other fields of the request. */
  readonly rest?: unknown;
}

/** Reads the request of a suspended tool: a string, or an object with a `message` (or `question`), `schema` or `choices`. */
export const askedBy = (request: unknown): AskedOfUser => {
  if (typeof request === 'string') return { question: request };
  if (!isFields(request)) return request === null || request === undefined ? {} : { rest: request };
  const { message, question, schema, requestedSchema, choices, ...rest } = request;
  const asked = textOf(message) || textOf(question);
  const ofChoices = isFields(schema) || isFields(requestedSchema) ? [] : listOf(choices);
  const given = isFields(schema) ? schema : isFields(requestedSchema) ? requestedSchema : undefined;
  const known = given ?? (ofChoices.length > 0 ? { enum: ofChoices } : undefined);
  return {
    ...(asked !== '' && { question: asked }),
    ...(known && { schema: known }),
    ...(Object.keys(rest).length > 0 && { rest }),
  };
};

const maxDepth = 3;
const maxFields = 50;
const maxOptions = 200;

/** The field for a schema. What a form cannot show is a field for JSON. */
export const fieldFor = (schema: Fields, name = '', isRequired = true, depth = 0): Field => {
  const label = textOf(schema['title']) || (name === '' ? 'Your answer' : wordsOf(name));
  const hint = textOf(schema['description']);
  const shape = shapeOf(schema, depth);
  const base = { name, label, isRequired, options: [], fields: [], schema };
  return { ...base, ...(hint !== '' && { hint }), ...shape };
};

type Shape = Pick<Field, 'kind'> & Partial<Pick<Field, 'input' | 'options' | 'fields'>>;

const shapeOf = (schema: Fields, depth: number): Shape => {
  const options = optionsOf(schema);
  if (options.length > 0) return { kind: 'choice', options };
  switch (schema['type']) {
    case 'string':
      return { kind: 'text', input: inputOf(schema) };
    case 'number':
    case 'integer':
      return { kind: 'number' };
    case 'boolean':
      return { kind: 'flag' };
    case 'array': {
      const several = optionsOf(fieldsOf(schema['items']));
      return several.length > 0 ? { kind: 'choices', options: several } : { kind: 'json' };
    }
    case 'object': {
      const required = listOf(schema['required']);
      const properties = Object.entries(fieldsOf(schema['properties']));
      if (properties.length === 0 || properties.length > maxFields || depth >= maxDepth) {
        return { kind: 'json' };
      }
      const fields = properties.map(([name, it]) =>
        fieldFor(fieldsOf(it), name, required.includes(name), depth + 1),
      );
      return { kind: 'group', fields };
    }
    default:
      return { kind: 'json' };
  }
};

const optionsOf = (schema: Fields): Field['options'] => {
  const named = [...listOf(schema['oneOf']), ...listOf(schema['anyOf'])].map(fieldsOf);
  const known = named.every((it) => 'const' in it) ? named : [];
  const values = listOf(schema['enum']).map((value) => ({ label: wordOf(value), value }));
  const all =
    values.length > 0
      ? values
      : known.map((it) => ({
          label: textOf(it['title']) || wordOf(it['const']),
          value: it['const'],
        }));
  return all.length > maxOptions ? [] : all;
};

const wordOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const inputOf = ({ format, maxLength }: Fields): NonNullable<Field['input']> => {
  if (format === 'email' || format === 'date') return format;
  if (format === 'uri') return 'url';
  return typeof maxLength === 'number' && maxLength <= 200 ? 'text' : 'lines';
};

/** The entry that a form begins with. Default: the default of the schema. */
export const entryFor = (
  { kind, schema, fields, options }: Field,
  given: unknown = schema['default'],
): Entry => {
  switch (kind) {
    case 'flag':
      return given === true;
    case 'choice':
      return indexesOf(options, given === undefined ? [] : [given]);
    case 'choices':
      return indexesOf(options, listOf(given));
    case 'group':
      return Object.fromEntries(
        fields.map((field) => [field.name, entryFor(field, ownOf(fieldsOf(given), field.name))]),
      );
    case 'json':
      return given === undefined ? '' : JSON.stringify(given, null, 2);
    default:
      return typeof given === 'string' || typeof given === 'number' ? String(given) : '';
  }
};

/** The own field of an object: `{}` has no `constructor`. */
export const ownOf = (fields: Fields, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;

/** The path of a field in a group. */
export const pathOf = (group: string, name: string): string =>
  group === '' ? name : `${group}.${name}`;

const indexesOf = (options: Field['options'], values: readonly unknown[]): readonly number[] =>
  options.flatMap(({ value }, at) => (values.includes(value) ? [at] : []));

/** The value of an entry, or what is wrong with it, by the path of the field. */
export type Read =
  { readonly value: unknown; readonly problems?: undefined } | { readonly problems: Problems };

/** The problems of fields, by their paths. */
export type Problems = Readonly<Record<string, string>>;

/** The known problems that another entry still has. */
export const stillIn = (read: Read, known: Problems): Problems =>
  Object.fromEntries(
    Object.entries(read.problems ?? {}).filter(([path]) => Object.hasOwn(known, path)),
  );

/** Reads an entry. A value of undefined is left out. */
export const readEntry = (field: Field, entry: Entry | undefined, path = field.name): Read => {
  if (field.kind === 'group') return readGroup(field, entry, path);
  const problem = (text: string): Read => ({ problems: { [path]: text } });
  if (field.kind === 'flag') return { value: entry === true };
  if (field.kind === 'choice' || field.kind === 'choices') {
    const chosen = Array.isArray(entry) ? entry.map((at) => field.options[Number(at)]?.value) : [];
    if (chosen.length === 0 && field.isRequired) return problem('Choose one.');
    if (field.kind === 'choice') return { value: chosen[0] };
    return { value: chosen.length === 0 && !field.isRequired ? undefined : chosen };
  }
  const text = typeof entry === 'string' ? entry.trim() : '';
  if (text === '') {
    return field.isRequired ? problem('This is needed.') : { value: undefined };
  }
  const read = readText(field, text);
  return 'problem' in read ? problem(read.problem) : read;
};

/** The entries of a group by name. */
export const entriesIn = (entry: Entry | undefined): Readonly<Record<string, Entry>> =>
  isGroup(entry) ? entry : {};

const isGroup = (entry: Entry | undefined): entry is Readonly<Record<string, Entry>> =>
  typeof entry === 'object' && !Array.isArray(entry);

const readGroup = ({ fields }: Field, entry: Entry | undefined, path: string): Read => {
  const entries = entriesIn(entry);
  const read = fields.map((field) => {
    const own = Object.hasOwn(entries, field.name) ? entries[field.name] : undefined;
    return [field.name, readEntry(field, own, pathOf(path, field.name))] as const;
  });
  const problems = Object.fromEntries(read.flatMap(([, it]) => Object.entries(it.problems ?? {})));
  if (Object.keys(problems).length > 0) return { problems };
  return {
    value: Object.fromEntries(
      read.flatMap(([name, it]) =>
        'value' in it && it.value !== undefined ? [[name, it.value]] : [],
      ),
    ),
  };
};

const readText = (
  { kind, schema, input }: Field,
  text: string,
): { readonly value: unknown } | { readonly problem: string } => {
  const { minimum, maximum, minLength, maxLength } = schema;
  if (kind === 'json') return parsedJson(text);
  if (kind === 'number') {
    const value = Number(text);
    if (!Number.isFinite(value)) return { problem: 'Enter a number.' };
    if (schema['type'] === 'integer' && !Number.isInteger(value)) {
      return { problem: 'Enter a whole number.' };
    }
    if (typeof minimum === 'number' && value < minimum) return { problem: `At least ${minimum}.` };
    if (typeof maximum === 'number' && value > maximum) return { problem: `Up to ${maximum}.` };
    return { value };
  }
  if (typeof minLength === 'number' && text.length < minLength) {
    return { problem: `At least ${minLength} characters.` };
  }
  if (typeof maxLength === 'number' && text.length > maxLength) {
    return { problem: `Up to ${maxLength} characters.` };
  }
  if (input === 'email' && !/^[^\s@]+@[^\s@]+$/u.test(text)) {
    return { problem: 'Enter an email address.' };
  }
  if (input === 'url' && !URL.canParse(text)) return { problem: 'Enter a link.' };
  return { value: text };
};
