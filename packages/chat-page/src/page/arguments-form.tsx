import { type Fields, fieldsOf, isFields } from './fields.js';
import {
  entriesIn,
  type Entry,
  entryFor,
  type Field,
  fieldFor,
  ownOf,
  pathOf,
  type Problems,
  type Read,
  readEntry,
  stillIn,
} from './schema-fields.js';
import { FieldView } from './schema-form.js';

/** The arguments of a tool call, in a form for their schema. */
export interface ArgumentsEdit {
  readonly field: Field;
  readonly entry: Entry;
  /** The arguments as the model wrote them. */
  readonly input: unknown;
}

/** The form for arguments; none if it would not show all of them as they are. */
export const editOf = (schema: Fields, input: unknown): ArgumentsEdit | undefined => {
  const field = fieldFor(schema);
  return field.kind === 'group' && isShown(field, input)
    ? { field, entry: entryFor(field, input), input }
    : undefined;
};

const isShown = (field: Field, given: unknown): boolean => {
  const isOption = (it: unknown) => field.options.some(({ value }) => value === it);
  switch (field.kind) {
    case 'group':
      return (
        isFields(given) &&
        Object.entries(given).every(([name, value]) =>
          field.fields.some((it) => it.name === name && isShown(it, value)),
        )
      );
    case 'flag':
      return typeof given === 'boolean';
    case 'number':
      return typeof given === 'number';
    case 'choice':
      return isOption(given);
    case 'choices':
      return Array.isArray(given) && given.every(isOption);
    case 'json':
      return true;
    case 'text':
      return typeof given === 'string' && given === given.trim() && fits(given, field.input);
  }
};

/** Whether an input keeps text: browsers change some line breaks, and show no wrong dates. */
const fits = (text: string, input: Field['input']): boolean =>
  input === 'date' ? isDate(text) : !(input === 'lines' ? /\r/u : /[\r\n]/u).test(text);

const isDate = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/u.test(text) &&
  text >= '0001' &&
  Number.isFinite(Date.parse(text)) &&
  new Date(text).toISOString().startsWith(text);

/** The arguments with what the user has changed. What is as it was is sent as the model wrote it. */
export const readEdit = ({ field, entry, input }: ArgumentsEdit): Read =>
  edited(field, { entry, first: entryFor(field, input), input }, '');

const edited = (
  field: Field,
  it: {
    readonly entry: Entry | undefined;
    readonly first: Entry | undefined;
    readonly input: unknown;
  },
  path: string,
): Read => {
  const { entry, first, input } = it;
  if (JSON.stringify(entry) === JSON.stringify(first)) return { value: input };
  if (field.kind !== 'group') return readEntry(field, entry, path);
  const given = fieldsOf(input);
  const read = field.fields.map((own) => {
    const { name } = own;
    const [now, before] = [entriesIn(entry)[name], entriesIn(first)[name]];
    const part = { entry: now, first: before, input: ownOf(given, name) };
    return [name, edited(own, part, pathOf(path, name))] as const;
  });
  const problems = Object.fromEntries(
    read.flatMap(([, own]) => Object.entries(own.problems ?? {})),
  );
  if (Object.keys(problems).length > 0) return { problems };
  // In the order of the model, and then in that of the schema.
  const values = new Map(Object.entries(given));
  for (const [name, own] of read) {
    if ('value' in own && own.value !== undefined) values.set(name, own.value);
    else values.delete(name);
  }
  return { value: Object.fromEntries(values) };
};

export const ArgumentsFields = (props: {
  readonly edit: ArgumentsEdit;
  /** Gets the form, and those of its problems that it still has. */
  readonly change: (edit: ArgumentsEdit, problems: Problems) => void;
  readonly problems: Problems;
}) => {
  const { edit, change, problems } = props;
  const changed = (entry: Entry) => {
    const next = { ...edit, entry };
    change(next, stillIn(readEdit(next), problems));
  };
  return <FieldView {...edit} change={changed} problems={problems} />;
};
