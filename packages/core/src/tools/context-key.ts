import { misuse } from '../values/errors.js';

/** What the program gives to the tools of a call, such as a connection or who is asking. No model sees it. */
export interface ContextValues {
  readonly entries: readonly ContextEntry[];
}

/** A value under its key. */
export interface ContextEntry {
  readonly name: string;
  /** Lays the value down where its key finds it. */
  put(values: ContextValues): void;
}

/** Names a value of a type. Two keys are never the same, also where they have one name. */
export interface ContextKey<Value> {
  readonly name: string;
  /** Gives the value: `createAgent({ context: [db.of(pool)] })`. */
  of(value: Value): ContextEntry;
  /** What was given; `undefined` where nothing was. */
  from(values: ContextValues): Value | undefined;
}

/** Also of a key that another copy of this package has made. */
const brand = Symbol.for('millrace.contextKey');

/** Makes a key for what tools need beside what the model says. The name is for error messages. */
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

/** Lays values over each other: of one key, the later one counts. */
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
  throw misuse(
    `Nothing was given for the context key '${key.name}'. Give it to the agent, the session or the call: { context: [key.of(value)] }.`,
  );
};

export const isContextKey = (value: unknown): value is ContextKey<unknown> =>
  typeof value === 'object' && value !== null && brand in value;

export const isContextEntry = (value: unknown): value is ContextEntry =>
  typeof value === 'object' && value !== null && 'put' in value && typeof value.put === 'function';
