import { identity, type MonoTypeOperatorFunction, type Observable } from 'rxjs';
import { lead, Part } from './contained.js';
import { inAsyncContext, isAsyncContextKnown } from './async-scope.js';

/**
 * Emits the values and the end of its source in the async context (`AsyncLocalStorage`) in which it was subscribed, not in
 * that of the code that emits them. Put it after a queue or a shared source of yours.
 */
export const restoreAsyncContext = <T>(): MonoTypeOperatorFunction<T> =>
  isAsyncContextKnown
    ? (source) => new Part((to, owner) => lead(() => source, inAsyncContext(to), owner))
    : identity;

/** As `defer` with `restoreAsyncContext`, in as many subscriptions as `defer`. */
export const deferInAsyncContext = <T>(make: () => Observable<T>): Observable<T> =>
  new Part((to, owner) => lead(make, inAsyncContext(to), owner));
