import { type Fields, isFields } from './fields.js';
import {
  type Entry,
  entryFor,
  type Field,
  fieldFor,
  type Read,
  readEntry,
} from './schema-fields.js';
import { FieldView } from './schema-form.js';

/** The arguments of a tool call, in a form for their schema. */
export interface ArgumentsEdit {
  readonly field: Field;
  readonly entry: Entry;
}

/** The form for arguments; none if it would lose some of them. */
export const editOf = (schema: Fields, input: unknown): ArgumentsEdit | undefined => {
  const field = fieldFor(schema);
  const entry = entryFor(field, input);
  const { value } = { value: undefined, ...readEntry(field, entry) };
  return field.kind === 'group' && keeps(value, input) ? { field, entry } : undefined;
};

const keeps = (value: unknown, given: unknown): boolean =>
  isFields(given)
    ? isFields(value) && Object.entries(given).every(([name, it]) => keeps(value[name], it))
    : JSON.stringify(value) === JSON.stringify(given);

export const readEdit = ({ field, entry }: ArgumentsEdit): Read => readEntry(field, entry);

export const ArgumentsFields = (props: {
  readonly edit: ArgumentsEdit;
  readonly change: (edit: ArgumentsEdit) => void;
  readonly problems: Readonly<Record<string, string>>;
}) => {
  const { edit, change, problems } = props;
  return <FieldView {...edit} change={(entry) => change({ ...edit, entry })} problems={problems} />;
};
