import {
  defer,
  identity,
  map,
  type MonoTypeOperatorFunction,
  Observable,
  type ObservableInput,
  type OperatorFunction,
} from 'rxjs';
import { hear } from './contained.js';
import { bindAsyncContext, inAsyncContext, isAsyncContextKnown } from './async-scope.js';

/**
 * Emits the values and the end of its source in the async context (`AsyncLocalStorage`) in which it was subscribed, not in
 * that of the code that emits them. Put it after a queue or a shared source of yours.
 */
export const restoreAsyncContext = <T>(): MonoTypeOperatorFunction<T> =>
  isAsyncContextKnown
    ? (source) => new Observable((to) => hearInContext(source, to, to))
    : identity;

/** As `hear`, in the async context of the subscription. */
export const hearInContext: typeof hear = (source$, to, owner) =>
  hear(source$, inAsyncContext(to), owner);

/** An operator that turns each value into an Observable, such as `concatMap`. */
export type Flatten = <In, Out>(
  project: (value: In) => ObservableInput<Out>,
) => OperatorFunction<In, Out>;

/** Flattens what is made of each value, which is subscribed in the async context in which the value came, however long it waits. */
export const flattened = <In, Out>(
  flatten: Flatten,
  project: (value: In) => Observable<Out>,
): OperatorFunction<In, Out> =>
  isAsyncContextKnown
    ? (source) => source.pipe(map(arriving(project)), flatten(identity))
    : flatten(project);

const arriving =
  <In, Out>(project: (value: In) => Observable<Out>) =>
  (value: In): Observable<Out> =>
    holdAsyncContext<Out>()(defer(() => project(value)));

/** Takes the current async context, in which what it is given later is subscribed, from any other one. */
export const holdAsyncContext = <T>(): MonoTypeOperatorFunction<T> => {
  if (!isAsyncContextKnown) return identity;
  const enter = bindAsyncContext((work: () => void) => work());
  return (source) =>
    new Observable((subscriber) =>
      enter(() => {
        subscriber.add(source.subscribe(subscriber));
      }),
    );
};
