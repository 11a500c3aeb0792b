import { isRecord } from '@millrace/core/adapter';
import type { FlowDocument } from './document.js';
import { readDocument, type SchemaFault } from './schema-problems.js';

/** Faults that are worth reading around. */
const mostFaults = 100;

/** What can be read of a document that is not as its schema says. */
export interface ReadAround {
  readonly document: FlowDocument;
  /** Whether components had to be left out of account: what they do is not known. */
  readonly isPartial: boolean;
}

/**
 * Reads a document around its faults, so that the others can be told, too: without unknown keys, and with components of which nothing is
 * known but what leads where. Gives nothing where that is not enough.
 */
export const readAround = (
  value: unknown,
  faults: readonly SchemaFault[],
): ReadAround | undefined => {
  if (faults.length > mostFaults) return undefined;
  const pruned = faults.reduce(
    (rest, { at, unknownKey }) => (unknownKey === undefined ? rest : without(rest, at, unknownKey)),
    value,
  );
  const { document, faults: left } = readDocument(pruned);
  if (document !== undefined) return { document, isPartial: false };
  if (!isRecord(pruned) || !isRecord(pruned['components'])) return undefined;
  const broken = new Set(left.map(({ at }) => (at[0] === 'components' ? at[1] : undefined)));
  const components = Object.entries(pruned['components']).map(
    ([id, component]) => [id, broken.has(id) ? unreadable(component) : component] as const,
  );
  const { document: partial } = readDocument({
    version: 1,
    name: 'flow',
    components: Object.fromEntries<unknown>(components),
  });
  return partial === undefined ? undefined : { document: partial, isPartial: true };
};

/** A function that no document can name: a name is not blank. */
export const unreadableFunction = ' ';

const unreadable = (component: unknown): unknown => ({
  component_name: 'code',
  params: { function: unreadableFunction },
  ...(isRecord(component) && linksOf(component)),
});

const linksOf = (component: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    ['upstream', 'downstream'].flatMap((key) =>
      isIds(component[key]) ? [[key, component[key]]] : [],
    ),
  );
const isIds = (value: unknown): boolean =>
  Array.isArray(value) && value.every((id) => typeof id === 'string');

const without = (value: unknown, path: readonly string[], key: string): unknown => {
  const [first, ...rest] = path;
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) =>
      String(index) === first ? without(item, rest, key) : item,
    );
  }
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([name]) => first !== undefined || name !== key);
  return Object.fromEntries(
    entries.map(([name, item]) => [name, name === first ? without(item, rest, key) : item]),
  );
};
