import { isRecord } from 'millrace/values';
import type { FlowDocument } from './document.js';
import { readDocument, type SchemaFault } from './schema-problems.js';

/** Documents with more faults are not read any further. */
const maxFaults = 100;

export interface PartialDocument {
  readonly document: FlowDocument;
  /** Whether some components are unreadable, so that their kind and params are unknown. */
  readonly isPartial: boolean;
}

/**
 * Reads an invalid document so that its other problems can be reported too: it removes unknown keys, and replaces
 * invalid components by placeholders with their links. Returns `undefined` if the result is still invalid.
 */
export const readPartially = (
  value: unknown,
  faults: readonly SchemaFault[],
): PartialDocument | undefined => {
  if (faults.length > maxFaults) return undefined;
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
    ...(isRecord(pruned['variables']) && { variables: pruned['variables'] }),
    components: Object.fromEntries<unknown>(components),
  });
  return partial === undefined ? undefined : { document: partial, isPartial: true };
};

/** Marks a placeholder. No document can name this function, because names are not blank. */
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
