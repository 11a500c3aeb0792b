import { type AgentEvent, type CallOptions, createDemand, interruptOn, only } from '@millrace/core';
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

/** How a call ended: with an answer, by one Ctrl-C, at once by a second, or by a signal that ends the program. */
export type Outcome = 'answered' | 'interrupted' | 'stopped' | 'terminated';

/** Begins a call, or goes on with one, and emits its events. */
export type Begin = (
  options: Required<Pick<CallOptions, 'demand' | 'use'>>,
) => Observable<AgentEvent>;

/** What may end a call, and where the answer goes. */
export interface AskOptions {
  readonly output: Output;
  /** The first one ends the call politely, the second at once, and so does any behind a signal that ends the program. */
  readonly interrupt$: Observable<unknown>;
  /** The first one brings the call to rest, the second ends it at once. */
  readonly terminate$: Observable<unknown>;
  /** Brings the call to rest, and emits when it is. */
  readonly drain$: () => Observable<unknown>;
}

/** Makes a call, writes what the presenter makes of its events, and emits how it ended. Errors with the call, or with the output. */
export const ask$ = (
  begin: Begin,
  presenter: OperatorFunction<AgentEvent, string>,
  { output, interrupt$, terminate$, drain$ }: AskOptions,
): Observable<Outcome> =>
  defer(() => {
    const demand = createDemand();
    // What is brought to rest is to be gone on with, and so must not end politely.
    const polite$ = interrupt$.pipe(takeUntil(terminate$));
    const asked$ = begin({ demand, use: [interruptOn(polite$)] }).pipe(
      connect((event$) =>
        merge(
          event$.pipe(presenter, writeTo(output.stream, demand), ignoreElements()),
          event$.pipe(
            outcomeOf,
            catchError(() => EMPTY),
          ),
        ),
      ),
      // The outcome is there before all of it has been written, and so is an error.
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

/** Keeps to itself how something ended after a notifier has emitted: that was the notifier's doing. */
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
