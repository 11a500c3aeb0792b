import { isRecord, parsedJson } from 'millrace/values';
import { isId } from '../ids.js';
import { plainCopy } from '../plain-copy.js';

/** A part of a canvas that the document does not have, or has in another way. */
export interface Unmapped {
  /** The ID in the canvas; `''` for the whole canvas. */
  readonly component: string;
  /** The param, or the part of the component. */
  readonly param?: string;
  /** A sentence that says why, and what to do. */
  readonly reason: string;
}

export type Params = Readonly<Record<string, unknown>>;

/** A component of a canvas, as far as it can be read. */
export interface CanvasComponent {
  /** The ID in the canvas. */
  readonly original: string;
  /** The ID in the document. */
  readonly id: string;
  /** In lower case: versions differ in it. */
  readonly kind: string;
  readonly name: string;
  readonly params: Params;
  /** IDs in the canvas. */
  readonly downstream: readonly string[];
  readonly parent: string | undefined;
}

export interface Canvas {
  readonly name: string;
  readonly components: ReadonlyMap<string, CanvasComponent>;
  /** Conversation variables: their `env.` names without the prefix. */
  readonly variables: ReadonlyMap<string, { readonly type: string; readonly value: unknown }>;
}

/** The time for more of them grows with their square. */
export const maxComponents = 500;

/** Reads the DSL of a canvas, alone or in the file of a template. Returns `undefined` for anything else. */
export const readCanvas = (given: unknown): Canvas | undefined => {
  const file = typeof given === 'string' ? parsedJson(given) : given;
  if (!isRecord(file)) return undefined;
  const dsl = isRecord(file['dsl']) ? file['dsl'] : file;
  const { components: all, globals, variables } = dsl;
  const { value: copy } = plainCopy({ components: all, globals, variables });
  if (!isRecord(copy) || !isRecord(copy['components'])) return undefined;
  const entries = Object.entries(copy['components']);
  if (entries.length > maxComponents) return undefined;
  const taken = new Set<string>();
  const components = entries.flatMap(([original, component]) => {
    const obj = isRecord(component) ? component['obj'] : undefined;
    if (!isRecord(component) || !isRecord(obj)) return [];
    const name = textIn(obj['component_name']);
    const params = recordIn(obj['params']);
    const parent = textIn(component['parent_id']);
    const read: CanvasComponent = {
      ...{ original, name, params, id: freeId(original, taken), kind: name.toLowerCase() },
      downstream: [...new Set(textsIn(component['downstream']))],
      parent: parent === '' ? undefined : parent,
    };
    return [[original, read] as const];
  });
  const repeating = new Set(
    components.flatMap(([id, { kind }]) => (kind === 'iteration' || kind === 'loop' ? [id] : [])),
  );
  return {
    name: nameOf(file['title']) || 'flow',
    components: new Map(
      components.map(([id, it]) => [id, { ...it, parent: parentIn(it, repeating) }]),
    ),
    variables: new Map([...fromGlobals(copy['globals']), ...fromVariables(copy['variables'])]),
  };
};

/** Only iterations and loops have components inside them. */
const parentIn = (
  { parent }: CanvasComponent,
  repeating: ReadonlySet<string>,
): string | undefined => (parent !== undefined && repeating.has(parent) ? parent : undefined);

const nameOf = (title: unknown): string => {
  const text = isRecord(title) ? (title['en'] ?? Object.values(title)[0]) : title;
  return textIn(text).trim().slice(0, 100);
};

/** An ID of a document that no other component has. */
const freeId = (original: string, taken: Set<string>): string => {
  const plain = original.replace(/[^A-Za-z0-9_:-]/gu, '_').slice(0, 50);
  const valid = isId(plain) ? plain : `c_${plain}`.slice(0, 50);
  const free = [valid, ...Array.from({ length: taken.size }, (_, n) => `${valid}_${n + 2}`)].find(
    (id) => !taken.has(id),
  );
  const id = free ?? valid;
  taken.add(id);
  return id;
};

const fromVariables = (variables: unknown) =>
  Object.entries(recordIn(variables)).map(([name, it]) => {
    const { type, value } = recordIn(it);
    return [name, { type: textIn(type).toLowerCase(), value }] as const;
  });

const fromGlobals = (globals: unknown) =>
  Object.entries(recordIn(globals)).flatMap(([name, value]) =>
    name.startsWith('env.')
      ? [[name.slice('env.'.length), { type: kindOf(value), value }] as const]
      : [],
  );

const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);

export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

export const textsIn = (value: unknown): readonly string[] =>
  typeof value === 'string'
    ? [value].filter((text) => text !== '')
    : Array.isArray(value)
      ? value.filter((item) => typeof item === 'string')
      : [];

export const recordIn = (value: unknown): Params => (isRecord(value) ? value : {});

export const recordsIn = (value: unknown): readonly Params[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

/** A name of a variable, a secret or a field. */
export const nameFrom = (...parts: readonly string[]): string => {
  const plain = parts.join('_').replace(/[^A-Za-z0-9_]/gu, '_');
  return (/^[A-Za-z]/u.test(plain) ? plain : `v_${plain}`).slice(0, 64);
};
