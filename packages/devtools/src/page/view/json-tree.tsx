// JSON as a tree. Branches are made when they are opened; long strings and lists are cut until the rest is asked for.
import { useState } from 'preact/hooks';
import { isRecord } from '../model/read-event.js';

const shownLength = 400;
const shownItems = 50;

interface JsonProps {
  readonly name?: string | undefined;
  readonly value: unknown;
  /** How many levels are open at first. */
  readonly open: number;
}

/** Branches that are open at first, wherever they are. */
const opened = ['input', 'content', 'text'];

export const JsonTree = ({ name, value, open: given }: JsonProps) => {
  const open = opened.includes(name ?? '') ? Math.max(given, 2) : given;
  const [isOpen, setOpen] = useState(open > 0);
  const [limit, setLimit] = useState(shownItems);
  if (!Array.isArray(value) && !isRecord(value)) {
    return (
      <div class="json leaf">
        <Name name={name} />
        <Scalar value={value} />
      </div>
    );
  }
  const entries: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((item: unknown, index) => [String(index), item] as const)
    : Object.entries(value);
  return (
    <div class="json">
      <button
        type="button"
        class="json-head"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? '▾' : '▸'} <Name name={name} />
        <span class="json-size">{sizeText(value, entries)}</span>
      </button>
      {isOpen && (
        <div class="json-branch">
          {entries.slice(0, limit).map(([key, item]) => (
            <JsonTree key={key} name={key} value={item} open={open - 1} />
          ))}
          {entries.length > limit && (
            <button type="button" class="more" onClick={() => setLimit(limit + 200)}>
              {entries.length - limit} more
            </button>
          )}
        </div>
      )}
    </div>
  );
};

const sizeText = (value: unknown, entries: readonly (readonly [string, unknown])[]): string => {
  if (Array.isArray(value)) return `[${value.length}]`;
  const keys = entries.slice(0, 4).map(([key]) => key);
  return `{${keys.join(', ')}${entries.length > 4 ? ', …' : ''}}`;
};

const Name = ({ name }: { readonly name: string | undefined }) =>
  name === undefined ? null : <span class="json-name">{name}: </span>;

const Scalar = ({ value }: { readonly value: unknown }) => {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== 'string') return <span class={`json-${typeof value}`}>{String(value)}</span>;
  if (value.length <= shownLength || isWhole)
    return <span class="json-string">{JSON.stringify(value)}</span>;
  return (
    <>
      <span class="json-string">{JSON.stringify(value.slice(0, shownLength)).slice(0, -1)}…</span>
      <button type="button" class="more" onClick={() => setWhole(true)}>
        Show all {value.length.toLocaleString('en')} characters
      </button>
    </>
  );
};
