import { MillraceError, type ModelChunk, type ModelContext } from '@millrace/core';
import {
  NEVER,
  Observable,
  type OperatorFunction,
  type Subscription,
  switchMap,
  timer,
} from 'rxjs';
import { inSentence } from './in-sentence.js';
import type { Piece } from './piece.js';

/** How long to wait for usage after the finish, in milliseconds. */
const usageMs = 2_000;

/**
 * How long a server may take to end its response after it is done, in milliseconds. If it does, the socket is reused.
 */
const endMs = 50;

/**
 * Emits the chunks of one answer up to its `finish`, and then only usage: anything else after the finish is ignored,
 * even an error. Completes with the source, or 2 seconds of open demand after the finish, or 50 milliseconds after the
 * server was done. Errors with `fail(error)`, also for the `invalidResponse` of a source without a finish.
 */
export const endAfterFinish =
  (
    vendor: string,
    { demand, scheduler }: Pick<ModelContext, 'demand' | 'scheduler'>,
    fail: (thrown: unknown) => MillraceError,
  ): OperatorFunction<Piece, ModelChunk> =>
  (source) =>
    // Not composed of operators, because every delta passes through here.
    new Observable((subscriber) => {
      let isFinished = false;
      let isDone = false;
      let timeLimit: Subscription | undefined;

      const endWithError = (thrown: unknown): void =>
        isFinished ? subscriber.complete() : subscriber.error(fail(thrown));
      const end = (): void =>
        isFinished ? subscriber.complete() : endWithError(incomplete(vendor));
      const endIn = (ms: number): void => {
        timeLimit?.unsubscribe();
        timeLimit = demand.open$
          .pipe(switchMap((open) => (open ? timer(ms, scheduler) : NEVER)))
          .subscribe({ next: end, error: endWithError });
        subscriber.add(timeLimit);
      };
      const take = (piece: Piece): void => {
        if (piece.type === 'done') {
          if (!isDone) endIn(endMs);
          isDone = true;
        } else if (!isFinished) {
          isFinished = piece.type === 'finish';
          if (isFinished) endIn(usageMs);
          subscriber.next(piece);
        } else if (piece.type === 'usage') subscriber.next(piece);
      };
      return source.subscribe({ next: take, error: endWithError, complete: end });
    });

const incomplete = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The answer of ${inSentence(vendor)} is incomplete: its stream ended without a finish.`,
    { retryable: true },
  );
