import { type AgentEvent, type Callable, createDemand, only } from '@millrace/core';
import {
  catchError,
  connect,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  type OperatorFunction,
  skip,
  take,
  takeLast,
} from 'rxjs';
import type { Output } from './terminal/output.js';
import { writeTo } from './terminal/write-to.js';

/** How a question ended: with an answer, by one Ctrl-C, or at once by a second. */
export type Outcome = 'answered' | 'interrupted' | 'stopped';

/** Whom to ask, and where the answer goes. */
export interface AskOptions {
  readonly agent: Callable;
  readonly output: Output;
  /** The first one ends the call politely, the second at once. */
  readonly interrupt$: Observable<unknown>;
  readonly maxIterations: number | undefined;
}

/** Asks a question, writes what the presenter makes of the events, and emits how it ended. Errors with the call, or with the output. */
export const ask$ = (
  question: string,
  presenter: OperatorFunction<AgentEvent, string>,
  { agent, output, interrupt$, maxIterations }: AskOptions,
): Observable<Outcome> =>
  defer(() => {
    const demand = createDemand();
    const limit = maxIterations === undefined ? {} : { maxIterations };
    const stopped$ = interrupt$.pipe(
      skip(1),
      map((): Outcome => 'stopped'),
    );
    const asked$ = agent.stream$(question, { demand, interruptOn: interrupt$, ...limit }).pipe(
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
    );
    return merge(stopped$, output.broken$, asked$).pipe(take(1));
  });

const outcomeOf: OperatorFunction<AgentEvent, Outcome> = (event$) =>
  event$.pipe(
    only('postCall'),
    filter(({ parentId }) => parentId === undefined),
    map(({ reply }) => (reply.reason === 'interrupted' ? 'interrupted' : 'answered')),
  );
