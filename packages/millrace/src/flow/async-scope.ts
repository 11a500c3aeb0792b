import type { Observer } from 'rxjs';

/** The part of `AsyncResource` of `node:async_hooks` in use. It costs 20 to 40 ns to create; `AsyncLocalStorage.snapshot()` 3 to 9 µs. */
interface Scope {
  runInAsyncScope<Args extends readonly unknown[]>(
    work: (...args: Args) => void,
    self: unknown,
    ...args: Args
  ): void;
}

type AsyncHooks = Readonly<{ AsyncResource?: new (type: string) => Scope }>;

interface Platform {
  readonly process?: { readonly getBuiltinModule?: (id: string) => AsyncHooks | undefined };
}

/** Asked for, not imported, and without the prefix `node:`, which bundlers and checks of bundles for browsers look for. */
const resourceOf = ({ process }: Platform): AsyncHooks['AsyncResource'] =>
  process?.getBuiltinModule?.('async_hooks')?.AsyncResource;

/** Undefined on platforms without `AsyncLocalStorage`. */
const Resource = resourceOf(globalThis);

/** Whether the platform has async contexts. */
export const isAsyncContextKnown = Resource !== undefined;

/** Makes an observer hear in the current async context. */
export const inAsyncContext = <T>(to: Observer<T>): Observer<T> => {
  if (Resource === undefined) return to;
  const scope = new Resource('Millrace');
  return {
    next: (value) => scope.runInAsyncScope(to.next, to, value),
    error: (cause: unknown) => scope.runInAsyncScope(to.error, to, cause),
    complete: () => scope.runInAsyncScope(to.complete, to),
  };
};

/** Makes a task run in the current async context, from wherever it is called. */
export const bindAsyncContext = <Args extends readonly unknown[]>(
  task: (...args: Args) => void,
): ((...args: Args) => void) => {
  if (Resource === undefined) return task;
  const scope = new Resource('Millrace');
  return (...args) => scope.runInAsyncScope(task, undefined, ...args);
};
