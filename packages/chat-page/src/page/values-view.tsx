import { type Fields, fieldsOf, isFields, listOf, textOf, wordsOf } from './fields.js';
import { Fold, Json } from './pieces.js';

const maxDepth = 6;
const maxEntries = 100;
const maxText = 400;

/** A value of a tool in words: a list of labels and values, by the titles of its schema. Its JSON is in a fold. */
export const Values = (props: {
  readonly label: string;
  readonly value: unknown;
  readonly schema?: Fields | undefined;
}) => {
  const { label, value, schema = {} } = props;
  if (value === undefined || value === '' || isEmpty(value)) return null;
  return (
    <figure class="values">
      <figcaption>{label}</figcaption>
      <ValueView value={value} schema={schema} depth={0} />
      {typeof value === 'object' && value !== null && <Raw value={value} />}
    </figure>
  );
};

/** The input of a form whose tool call has ended without it, such as in another tab. */
export const NotSent = ({ value }: { readonly value: unknown }) => (
  <Values label="Not sent, because the tool call has ended" value={value} />
);

/** A value as JSON, folded, or text that has no words, such as broken arguments. */
export const Raw = ({ value }: { readonly value: unknown }) => (
  <Fold class="raw" title="Raw">
    <Json value={value} />
  </Fold>
);

interface ValueProps {
  readonly value: unknown;
  readonly schema: Fields;
  readonly depth: number;
}

export const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

const ValueView = ({ value, schema, depth }: ValueProps) => {
  if (typeof value !== 'object' || value === null || isEmpty(value)) {
    return <Words text={wordOf(value, schema)} />;
  }
  if (depth >= maxDepth) return <Raw value={value} />;
  const rows = Object.entries(value);
  const left = rows.length - maxEntries;
  const shown = rows.slice(0, maxEntries);
  const more = left > 0 && <small>{left.toLocaleString()} more</small>;
  const below = (it: unknown, own: unknown) => (
    <ValueView value={it} schema={fieldsOf(own)} depth={depth + 1} />
  );
  if (Array.isArray(value)) {
    return (
      <>
        <ul>
          {shown.map(([at, it]) => (
            <li key={at}>{below(it, schema['items'])}</li>
          ))}
        </ul>
        {more}
      </>
    );
  }
  const properties = fieldsOf(schema['properties']);
  return (
    <>
      <dl>
        {shown.map(([name, it]) => {
          const own = fieldsOf(Object.hasOwn(properties, name) ? properties[name] : undefined);
          return (
            <div key={name}>
              <dt title={textOf(own['description']) || undefined}>
                {textOf(own['title']) || wordsOf(name)}
              </dt>
              <dd>{below(it, own)}</dd>
            </div>
          );
        })}
      </dl>
      {more}
    </>
  );
};

const Words = ({ text }: { readonly text: string }) =>
  text.length <= maxText ? (
    <span class="plain">{text}</span>
  ) : (
    <Fold title={<span>{text.slice(0, maxText / 4)}…</span>}>
      <p class="plain">{text}</p>
    </Fold>
  );

/** A value that is no list or group, by the title that its schema has for it. */
const wordOf = (value: unknown, schema: Fields): string => {
  const options = [...listOf(schema['oneOf']), ...listOf(schema['anyOf'])].map(fieldsOf);
  const title = options.find((it) => 'const' in it && it['const'] === value)?.['title'];
  return textOf(title) || plainWords(value);
};

/** Any value on one line, without JSON. */
export const plainWords = (value: unknown): string => {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (value === null || value === undefined || isEmpty(value)) return 'None';
  if (Array.isArray(value)) return value.map(plainWords).join(', ');
  if (!isFields(value)) return textOf(value) || JSON.stringify(value);
  return Object.entries(value)
    .map(([name, it]) => `${wordsOf(name)}: ${plainWords(it)}`)
    .join(', ');
};
