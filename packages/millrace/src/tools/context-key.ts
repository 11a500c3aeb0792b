import { type MillraceError, misuse } from '../values/errors.js';

/** Values that the program passes to the tools of a call, such as a connection or the user. Hidden from the model. */
export interface ContextValues {
  readonly entries: readonly ContextEntry[];
}

export interface ContextEntry {
  readonly name: string;
  put(values: ContextValues): void;
}

/** A typed key. Each key is unique, even if names repeat. */
export interface ContextKey<Value> {
  readonly name: string;
  /** Pairs the key with a value: `createAgent({ context: [db.of(pool)] })`. */
  of(value: Value): ContextEntry;
  /** Returns the value, or `undefined`. */
  from(values: ContextValues): Value | undefined;
}

/** Also recognizes keys of another copy of this package. */
const brand = Symbol.for('millrace.contextKey');

/** Creates a key for a value that tools need besides their arguments. The name is for error messages. */
export const contextKey = <Value>(name: string): ContextKey<Value> => {
  const held = new WeakMap<ContextValues, Value>();
  return Object.freeze({
    [brand]: true,
    name,
    of: (value: Value) => ({
      name,
      put: (values: ContextValues) => {
        held.set(values, value);
      },
    }),
    from: (values: ContextValues) => held.get(values),
  });
};

/** Merges values: later ones override earlier ones. */
export const contextValues = (
  ...layers: readonly (readonly ContextEntry[] | undefined)[]
): ContextValues => {
  const entries = layers.flatMap((layer) => layer ?? []);
  if (entries.length === 0) return noValues;
  const values = Object.freeze({ entries });
  entries.forEach((entry) => entry.put(values));
  return values;
};

export const noValues: ContextValues = Object.freeze({ entries: [] });

export const valueOf = <Value>(key: ContextKey<Value>, values: ContextValues): Value => {
  const value = key.from(values);
  if (value !== undefined) return value;
  throw noValue(key);
};

export const noValue = ({ name }: { readonly name: string }, owner = ''): MillraceError =>
  misuse(
    `${owner}The context key '${name}' has no value. Pass one to the agent or the call: { context: [key.of(value)] }.`,
  );

export const isContextKey = (value: unknown): value is ContextKey<unknown> =>
  typeof value === 'object' && value !== null && brand in value;

export const isContextEntry = (value: unknown): value is ContextEntry =>
  typeof value === 'object' && value !== null && 'put' in value && typeof value.put === 'function';
