import { defer, expand, type Observable, of } from 'rxjs';
import { createTrampoline, subscribeOnTrampoline } from '../trampoline.js';

/** Emits a state and all that come of it, one by one, until one comes to nothing. States that come at once do not nest. */
export const inTurns$ = <State>(
  first: State,
  next: (state: State) => Observable<State>,
): Observable<State> =>
  defer(() => {
    const inTurn = subscribeOnTrampoline<State>(createTrampoline());
    return of(first).pipe(expand((state) => next(state).pipe(inTurn)));
  });
