import { isRecord } from '@millrace/core/adapter';

/** The part of a dispatcher of undici that the `fetch` of Node uses. */
interface Dispatcher {
  dispatch(options: object, handler: object): unknown;
}

/**
 * Lifts the time limits of the `fetch` of Node, which fails after 5 minutes without headers or without a piece of the
 * body: the model has timeouts of its own. The request still goes through the dispatcher in force, with its
 * connections, proxy or mock, and limits that an `Agent` was made with hold. Changes `init`; a `fetch` that is not made
 * of undici ignores it.
 *
 * The field is not enumerable, so that a `fetch` which copies `init` to add a dispatcher keeps its own.
 */
export const withoutLimits = (init: RequestInit): RequestInit => {
  const [older, newer] = [dispatcherAt(1), dispatcherAt(2)];
  const current = newer ?? older;
  if (current === undefined || 'dispatcher' in init) return init;
  const dispatch = (options: object, handler: object): unknown => {
    // Undici 8 has other handlers than the undici of Node 20 to 24, and wraps its dispatcher for them.
    const chosen = ('onRequestStart' in handler ? newer : older) ?? current;
    const limits = { ...(optionsOf(chosen) ?? optionsOf(current)) };
    const { headersTimeout = 0, bodyTimeout = 0 } = limits;
    return chosen.dispatch({ ...options, headersTimeout, bodyTimeout }, handler);
  };
  const value: unknown = Object.create(current, { dispatch: { value: dispatch } });
  return Object.defineProperty(init, 'dispatcher', { value });
};

/** The dispatcher that undici, or its `setGlobalDispatcher`, has put there. */
const dispatcherAt = (version: number): Dispatcher | undefined => {
  const found: unknown = Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${version}`));
  return isDispatcher(found) ? found : undefined;
};

const isDispatcher = (value: unknown): value is Dispatcher =>
  isRecord(value) && typeof value['dispatch'] === 'function';

/** The options that an `Agent` was made with. Undici keeps them at a symbol of its own. */
const optionsOf = (dispatcher: object): Readonly<Record<string, unknown>> | undefined =>
  Object.getOwnPropertySymbols(dispatcher)
    .filter(({ description }) => description === 'options')
    .map((key): unknown => Reflect.get(dispatcher, key))
    .find(isRecord);
