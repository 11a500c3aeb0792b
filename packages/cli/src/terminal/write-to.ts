import type { Writable } from 'node:stream';
import type { DemandGate } from 'millrace';
import {
  concatMap,
  defer,
  dematerialize,
  finalize,
  fromEvent,
  map,
  materialize,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableNotification,
  of,
  take,
  tap,
} from 'rxjs';

/**
 * Writes each text, and emits it when the output accepts more. Reports the number of waiting texts to `demand`, which
 * applies backpressure to the call. An error is passed on after all earlier texts are written.
 */
export const writeTo =
  (output: Writable, demand: DemandGate): MonoTypeOperatorFunction<string> =>
  (text$) =>
    defer(() => {
      let waiting = 0;
      const wait = (change: 1 | -1) => (): void => {
        waiting += change;
        demand.backlog(waiting);
      };
      return text$.pipe(
        tap(wait(1)),
        materialize(),
        concatMap((step) => (step.kind === 'N' ? write$(output, step.value) : of(step))),
        dematerialize(),
        tap(wait(-1)),
        finalize(() => demand.release()),
      );
    });

const write$ = (output: Writable, text: string): Observable<ObservableNotification<string>> =>
  defer(() => (output.write(text) ? of(true) : fromEvent(output, 'drain').pipe(take(1)))).pipe(
    map(() => ({ kind: 'N', value: text })),
  );
