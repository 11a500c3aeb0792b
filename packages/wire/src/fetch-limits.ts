import { isRecord } from '@millrace/core/adapter';

/** The part of an undici dispatcher that Node's `fetch` uses. */
interface Dispatcher {
  dispatch(options: object, handler: object): unknown;
}

/**
 * Removes the time limits of Node's `fetch`, which fails after 5 minutes without headers or body data: the model has
 * its own timeouts. Requests still go through the current dispatcher, with its connections, proxy or mock, and explicit
 * limits of an `Agent` stay in force. Mutates `init`. A `fetch` that is not based on undici ignores it.
 *
 * The field is not enumerable, so a `fetch` that copies `init` to add its own dispatcher keeps that one.
 */
export const withoutLimits = (init: RequestInit): RequestInit => {
  const [older, newer] = [dispatcherAt(1), dispatcherAt(2)];
  const current = newer ?? older;
  if (current === undefined || 'dispatcher' in init) return init;
  const dispatch = (options: object, handler: object): unknown => {
    // The handlers of undici 8 differ from those of Node 20 to 24; it wraps its dispatcher for the older ones.
    const chosen = ('onRequestStart' in handler ? newer : older) ?? current;
    const limits = { ...(optionsOf(chosen) ?? optionsOf(current)) };
    const { headersTimeout = 0, bodyTimeout = 0 } = limits;
    return chosen.dispatch({ ...options, headersTimeout, bodyTimeout }, handler);
  };
  const value: unknown = Object.create(current, { dispatch: { value: dispatch } });
  return Object.defineProperty(init, 'dispatcher', { value });
};

/** The dispatcher that undici or `setGlobalDispatcher` registered. */
const dispatcherAt = (version: number): Dispatcher | undefined => {
  const found: unknown = Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${version}`));
  return isDispatcher(found) ? found : undefined;
};

const isDispatcher = (value: unknown): value is Dispatcher =>
  isRecord(value) && typeof value['dispatch'] === 'function';

/** The options of an `Agent`, which undici keeps under a private symbol. */
const optionsOf = (dispatcher: object): Readonly<Record<string, unknown>> | undefined =>
  Object.getOwnPropertySymbols(dispatcher)
    .filter(({ description }) => description === 'options')
    .map((key): unknown => Reflect.get(dispatcher, key))
    .find(isRecord);
