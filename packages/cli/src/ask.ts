import { type AgentEvent, type CallOptions, createDemand, interruptOn, only } from 'millrace';
import {
  catchError,
  connect,
  defer,
  dematerialize,
  EMPTY,
  exhaustMap,
  filter,
  ignoreElements,
  map,
  materialize,
  merge,
  type Observable,
  type OperatorFunction,
  skip,
  startWith,
  switchMap,
  take,
  takeLast,
  takeUntil,
  withLatestFrom,
} from 'rxjs';
import type { Output } from './terminal/output.js';
import { writeTo } from './terminal/write-to.js';

/** How a call ended: with an answer, on the first Ctrl-C, on the second, or on a signal that ends the program. */
export type Outcome = 'answered' | 'interrupted' | 'stopped' | 'terminated';

/** Starts or resumes a call, and emits its events. */
export type Begin = (
  options: Required<Pick<CallOptions, 'demand' | 'use'>>,
) => Observable<AgentEvent>;

export interface AskOptions {
  readonly output: Output;
  /** The first one interrupts the call; the second one aborts it, and so does any after a signal of `terminate$`. */
  readonly interrupt$: Observable<unknown>;
  /** The first one drains the call, the second one aborts it. */
  readonly terminate$: Observable<unknown>;
  /** Drains the call, and emits when it is done. */
  readonly drain$: () => Observable<unknown>;
}

/** Runs a call, writes its events with the presenter, and emits how it ended. Errors with the call or the output. */
export const ask$ = (
  begin: Begin,
  presenter: OperatorFunction<AgentEvent, string>,
  { output, interrupt$, terminate$, drain$ }: AskOptions,
): Observable<Outcome> =>
  defer(() => {
    const demand = createDemand();
    // A call that is being drained is to be resumed, so it must not be interrupted any more.
    const polite$ = interrupt$.pipe(takeUntil(terminate$));
    const asked$ = begin({ demand, use: [interruptOn(polite$.pipe(map(() => undefined)))] }).pipe(
      connect((event$) =>
        merge(
          event$.pipe(presenter, writeTo(output.stream, demand), ignoreElements()),
          event$.pipe(
            outcomeOf,
            catchError(() => EMPTY),
          ),
        ),
      ),
      // Wait for the output: the outcome or an error arrives before everything is written.
      takeLast(1),
      unlessAfter(terminate$),
    );
    const drained$ = terminate$.pipe(exhaustMap(drain$));
    const again$ = terminate$.pipe(
      take(1),
      switchMap(() => merge(interrupt$, terminate$)),
    );
    const outcomes = [
      [polite$.pipe(skip(1)), 'stopped'],
      [merge(drained$, again$), 'terminated'],
    ] as const;
    const ended = outcomes.map(([end$, outcome]) => end$.pipe(map((): Outcome => outcome)));
    return merge(output.broken$, asked$, ...ended).pipe(take(1));
  });

const outcomeOf: OperatorFunction<AgentEvent, Outcome> = (event$) =>
  event$.pipe(
    only('postCall'),
    filter(({ parentId }) => parentId === undefined),
    map(({ reply }) => (reply.reason === 'interrupted' ? 'interrupted' : 'answered')),
  );

/** Suppresses all notifications after the notifier has emitted, as it caused them. */
const unlessAfter =
  (notifier$: Observable<unknown>) =>
  <T>(source: Observable<T>): Observable<T> => {
    const isAfter$ = notifier$.pipe(
      take(1),
      map(() => true),
      startWith(false),
    );
    return source.pipe(
      materialize(),
      withLatestFrom(isAfter$),
      filter(([, isAfter]) => !isAfter),
      map(([notification]) => notification),
      dematerialize(),
    );
  };
