import { describe, expect, it } from '@jest/globals';
import {
  type Arbitrary,
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  dictionary,
  integer,
  json,
  nat,
  oneof,
  option,
  property,
  record,
  string,
  subarray,
  uniqueArray,
} from 'fast-check';
import { type ArgumentsEdit, editOf, readEdit } from './arguments-form.js';
import { type Fields, fieldsOf, listOf } from './fields.js';
import { type Entry, entriesIn, type Field } from './schema-fields.js';

const schema = {
  type: 'object',
  required: ['to', 'amount'],
  properties: {
    to: { type: 'string' },
    amount: { type: 'number' },
    isUrgent: { type: 'boolean' },
    how: { enum: ['cash', 'card'] },
    address: { type: 'object', properties: { city: { type: 'string' } } },
  },
};

describe('the form for arguments', () => {
  it('begins with them', () => {
    const given = { to: 'Ann', amount: 5, how: 'card' };
    const edit = editOf(schema, given);
    expect(edit?.entry).toMatchObject({ to: 'Ann', amount: '5', how: [1] });
    expect(edit && readEdit(edit)).toMatchObject({ value: given });
  });

  it.each([
    ['an argument that the schema does not have', { to: 'Ann', amount: 5, more: 1 }],
    ['a value of another type', { to: 'Ann', amount: 'five' }],
    ['spaces around text', { to: ' Ann ', amount: 5 }],
    ['arguments that are no object', [1]],
  ])('does not exist for %s: it would be lost', (_, given) => {
    expect(editOf(schema, given)).toBeUndefined();
    expect(editOf({ type: 'object' }, given)).toBeUndefined();
  });

  it.each([
    ['text of several lines in one line', { type: 'string', maxLength: 50 }, 'a\nb'],
    ['line breaks that browsers change', { type: 'string' }, 'a\r\nb'],
    ['a date that is none', { type: 'string', format: 'date' }, '2026-02-30'],
    ['a value that is no option', { enum: ['a'] }, 'b'],
    ['null for an object', { type: 'object', properties: { city: {} } }, null],
  ])('does not exist for %s: the user would not see it', (_, given, value) => {
    expect(editOf({ type: 'object', properties: { given } }, { given: value })).toBeUndefined();
  });

  it.each([
    [{ type: 'boolean' }],
    [{ type: 'integer', default: 10 }],
    [{ type: 'object', properties: { city: { type: 'string', default: 'Oslo' } } }],
    [{ enum: ['a', 'b'], default: 'a' }],
    [{ default: {} }],
  ])('adds nothing that the model left out: %j', (more) => {
    const edit = editOf(
      { ...schema, required: ['more'], properties: { to: { type: 'string' }, more } },
      { to: 'Ann' },
    );
    expect(edit && readEdit(edit)).toStrictEqual({ value: { to: 'Ann' } });
    expect(edit && readEdit(entered(edit, ['to'], 'Bob'))).toStrictEqual({ value: { to: 'Bob' } });
  });

  it('leaves out what the user has cleared, and checks only what is touched', () => {
    const edit = editOf(
      { ...schema, properties: { ...schema.properties, note: { type: 'string' } } },
      { note: 'Hi', to: '', address: { city: 'Oslo' } },
    );
    if (edit === undefined) throw new Error('There is no form.');
    expect(readEdit(entered(edit, ['note'], ''))).toStrictEqual({
      value: { to: '', address: { city: 'Oslo' } },
    });
    expect(readEdit(entered(edit, ['amount'], 'five'))).toStrictEqual({
      problems: { amount: 'Enter a number.' },
    });
  });

  it('sends what the user did not touch as the model wrote it, for any schema and input', () => {
    let forms = 0;
    assert(
      property(schemas.chain(withInput), ([shape, input]) => {
        const edit = editOf(shape, input);
        if (edit === undefined) return;
        forms += 1;
        expect(readEdit(edit)).toEqual({ value: input });
      }),
      { numRuns: 500 },
    );
    expect(forms).toBeGreaterThan(10);
  });

  it('changes one field if one is touched, for any schema and input', () => {
    let touched = 0;
    assert(
      property(schemas.chain(withInput), nat(), ([shape, input], at) => {
        const edit = editOf(shape, input);
        if (edit === undefined) return;
        const leaves = leavesOf(edit.field, []);
        const leaf = leaves[at % leaves.length];
        if (leaf === undefined) return;
        const { field, path } = leaf;
        const before = path.reduce<Entry | undefined>(
          (it, name) => entriesIn(it)[name],
          edit.entry,
        );
        const [entry, value] = touchOf(field, before);
        if (JSON.stringify(entry) === JSON.stringify(before)) return;
        touched += 1;
        expect(readEdit(entered(edit, path, entry))).toEqual({
          value: setIn(input, path, value),
        });
      }),
      { numRuns: 500 },
    );
    expect(touched).toBeGreaterThan(10);
  });
});

/** The form after an entry of the user. */
const entered = (edit: ArgumentsEdit, path: readonly string[], entry: Entry): ArgumentsEdit => ({
  ...edit,
  entry: setIn(edit.entry, path, entry) as Entry,
});

const setIn = (value: unknown, [name, ...rest]: readonly string[], next: unknown): unknown => {
  if (name === undefined) return next;
  const fields = fieldsOf(value);
  const own = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return { ...fields, [name]: setIn(own, rest, next) };
};

interface Leaf {
  readonly field: Field;
  readonly path: readonly string[];
}

const leavesOf = (field: Field, path: readonly string[]): readonly Leaf[] =>
  field.kind === 'group'
    ? field.fields.flatMap((it) => leavesOf(it, [...path, it.name]))
    : [{ field, path }];

const texts: Readonly<Record<string, string>> = {
  email: 'a@example.com',
  url: 'https://example.com',
  date: '2026-01-02',
};

/** Another entry of a field, and its value. */
const touchOf = (field: Field, before: Entry | undefined): readonly [Entry, unknown] => {
  switch (field.kind) {
    case 'flag':
      return [before !== true, before !== true];
    case 'number':
      return ['7', 7];
    case 'choice':
      return [[0], field.options[0]?.value];
    case 'choices':
      return [[0], [field.options[0]?.value]];
    case 'json':
      return ['{"touched":1}', { touched: 1 }];
    default: {
      const text = texts[field.input ?? ''] ?? 'touched';
      return [text, text];
    }
  }
};

const value = json().map((it): unknown => JSON.parse(it));
const names = constantFrom('a', 'b', 'first_name', 'limit', 'constructor', '__proto__', 'toString');
const options = oneof(string(), integer(), boolean(), constant(null));

const leafSchemas: Arbitrary<Fields> = oneof(
  record({ type: constant('string'), format: constantFrom('date', 'email', 'uri', undefined) }),
  record({ type: constant('string'), maxLength: constantFrom(50, 5_000) }),
  constant({ type: 'number' }),
  constant({ type: 'integer' }),
  constant({ type: 'boolean' }),
  uniqueArray(options, { minLength: 1 }).map((all) => ({ enum: all })),
  uniqueArray(options, { minLength: 1 }).map((all) => ({ type: 'array', items: { enum: all } })),
  constant({ type: 'array' }),
  constant({}),
);

const withDefault = (shapes: Arbitrary<Fields>): Arbitrary<Fields> =>
  shapes.chain((shape) =>
    oneof(
      constant(shape),
      oneof(value, valueOf(shape)).map((it) => ({ ...shape, default: it })),
    ),
  );

const objectsOf = (shapes: Arbitrary<Fields>): Arbitrary<Fields> =>
  dictionary(names, shapes, { minKeys: 1 }).chain((properties) =>
    subarray(Object.keys(properties)).map((required) => ({
      ...{ type: 'object', required },
      properties,
    })),
  );

const inner = withDefault(oneof(leafSchemas, objectsOf(withDefault(leafSchemas))));
const schemas = objectsOf(inner);

/** A value for a schema, of which parts may be left out or of another type. */
const valueOf = (shape: Fields): Arbitrary<unknown> => {
  const all = listOf(shape['enum']);
  if (all.length > 0) return constantFrom(...all);
  switch (shape['type']) {
    case 'string':
      return oneof(
        { weight: 9, arbitrary: constantFrom('', 'Ann', 'a b', '2026-11-30') },
        { weight: 1, arbitrary: oneof(string(), constantFrom(' Ann ', 'a\nb', 'a\r\nb')) },
      );
    case 'number':
      return oneof(integer(), constantFrom(0.5, 1e-9, 1e21));
    case 'integer':
      return integer();
    case 'boolean':
      return boolean();
    case 'array': {
      const items = listOf(fieldsOf(shape['items'])['enum']);
      return items.length > 0 ? array(constantFrom(...items)) : array(value);
    }
    case 'object': {
      const parts = Object.entries(fieldsOf(shape['properties'])).map(([name, it]) =>
        option(valueOf(fieldsOf(it)), { nil: undefined }).map((own) => [name, own] as const),
      );
      return parts.reduce<Arbitrary<unknown>>(
        (before, part) =>
          before.chain((fields) =>
            part.map(([name, own]) =>
              own === undefined ? fields : { ...fieldsOf(fields), [name]: own },
            ),
          ),
        constant({}),
      );
    }
    default:
      return value;
  }
};

const withInput = (shape: Fields): Arbitrary<readonly [Fields, unknown]> =>
  oneof(
    { weight: 8, arbitrary: valueOf(shape) },
    { weight: 1, arbitrary: dictionary(names, value) },
    { weight: 1, arbitrary: value },
  ).map((input) => [shape, JSON.parse(JSON.stringify(input))] as const);
