import { useId } from 'preact/hooks';
import { entriesIn, type Entry, type Field, pathOf, type Problems } from './schema-fields.js';

/** The inputs for a field, with its problem beside it. */
export const FieldView = (props: {
  readonly field: Field;
  readonly entry: Entry | undefined;
  readonly change: (entry: Entry) => void;
  readonly problems: Problems;
  readonly path?: string;
}) => {
  const { field, entry, change, problems, path = field.name } = props;
  const id = useId();
  const problem = problems[path];
  const notes = { hint: field.hint && `${id}-hint`, problem: problem && `${id}-problem` };
  const described = {
    'aria-describedby': [notes.hint, notes.problem].filter(Boolean).join(' ') || undefined,
    'aria-invalid': problem === undefined ? undefined : true,
  };
  const text = field.isRequired ? field.label : `${field.label} (optional)`;
  const below = (
    <>
      {field.hint !== undefined && <small id={notes.hint}>{field.hint}</small>}
      {problem !== undefined && (
        <span class="failure" id={notes.problem}>
          {problem}
        </span>
      )}
    </>
  );
  switch (field.kind) {
    case 'flag':
      return (
        <div class="field-row">
          <label class="flag">
            <input
              type="checkbox"
              checked={entry === true}
              {...described}
              onChange={(event) => change(event.currentTarget.checked)}
            />
            {field.label}
          </label>
          {below}
        </div>
      );
    case 'group':
    case 'choice':
    case 'choices': {
      const inputs =
        field.kind === 'group' ? (
          <Group {...props} path={path} />
        ) : (
          <Options field={field} name={id} entry={entry} change={change} />
        );
      return field.kind === 'group' && field.name === '' ? (
        inputs
      ) : (
        <fieldset {...described}>
          <legend>{text}</legend>
          {inputs}
          {below}
        </fieldset>
      );
    }
    default:
      return (
        <div class="field-row">
          <label for={id}>{text}</label>
          <TextInput id={id} field={field} entry={entry} change={change} described={described} />
          {below}
        </div>
      );
  }
};

const Group = (props: Parameters<typeof FieldView>[0] & { readonly path: string }) => {
  const { field, entry, change, problems, path } = props;
  const entries = entriesIn(entry);
  return (
    <>
      {field.fields.map((it) => (
        <FieldView
          key={it.name}
          field={it}
          entry={entries[it.name]}
          change={(next) => change({ ...entries, [it.name]: next })}
          problems={problems}
          path={pathOf(path, it.name)}
        />
      ))}
    </>
  );
};

const Options = (props: {
  readonly field: Field;
  readonly name: string;
  readonly entry: Entry | undefined;
  readonly change: (entry: Entry) => void;
}) => {
  const { field, name, entry, change } = props;
  const chosen: readonly number[] = Array.isArray(entry) ? entry : [];
  const isSingle = field.kind === 'choice';
  return (
    <div class="options">
      {field.options.map(({ label }, at) => (
        <label key={at} class="flag">
          <input
            type={isSingle ? 'radio' : 'checkbox'}
            name={name}
            checked={chosen.includes(at)}
            onChange={({ currentTarget: { checked } }) =>
              change(isSingle ? [at] : checked ? [...chosen, at] : chosen.filter((it) => it !== at))
            }
          />
          {label}
        </label>
      ))}
    </div>
  );
};

const TextInput = (props: {
  readonly id: string;
  readonly field: Field;
  readonly entry: Entry | undefined;
  readonly change: (entry: Entry) => void;
  readonly described: object;
}) => {
  const { id, field, entry, change, described } = props;
  const shared = { id, value: typeof entry === 'string' ? entry : '', ...described };
  if (field.kind === 'json' || field.input === 'lines') {
    return (
      <textarea
        {...shared}
        class={field.kind === 'json' ? 'code' : undefined}
        spellcheck={field.kind !== 'json'}
        onInput={(event) => change(event.currentTarget.value)}
      />
    );
  }
  const onInput = (event: { readonly currentTarget: HTMLInputElement }) =>
    change(event.currentTarget.value);
  if (field.input === 'date') return <input type="date" {...shared} onInput={onInput} />;
  const inputMode =
    field.kind === 'number'
      ? 'decimal'
      : field.input === 'email' || field.input === 'url'
        ? field.input
        : 'text';
  return <input type="text" inputMode={inputMode} {...shared} onInput={onInput} />;
};
