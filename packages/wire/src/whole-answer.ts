import { MillraceError, type ModelChunk, type ModelContext } from '@millrace/core';
import {
  NEVER,
  Observable,
  type OperatorFunction,
  type Subscription,
  switchMap,
  timer,
} from 'rxjs';
import { inside } from './inside.js';
import type { Piece } from './piece.js';

/** Milliseconds that a finished answer is read on, for its usage. */
const usageMs = 2_000;

/**
 * Milliseconds that are left to a server which has said that it is done: one that ends in time keeps its
 * socket.
 */
const endMs = 50;

/**
 * Emits the chunks of one answer up to its `finish`, and the usage behind it; everything else behind it, errors
 * too, is passed over. Completes with the source, but not long after the finish: 2 seconds while demand is
 * open, or 50 milliseconds when the server said that it is done. Errors with what `fail` makes of an error, or
 * of the `invalidResponse` of a source that completes without a finish.
 */
export const wholeAnswer =
  (
    vendor: string,
    { demand, scheduler }: Pick<ModelContext, 'demand' | 'scheduler'>,
    fail: (thrown: unknown) => MillraceError,
  ): OperatorFunction<Piece, ModelChunk> =>
  (source) =>
    // Of its own making: each delta passes here, and only what ends an answer is more than passed on.
    new Observable((subscriber) => {
      let isFinished = false;
      let isDone = false;
      let leaving: Subscription | undefined;

      const breakOff = (thrown: unknown): void =>
        isFinished ? subscriber.complete() : subscriber.error(fail(thrown));
      const end = (): void => (isFinished ? subscriber.complete() : breakOff(incomplete(vendor)));
      const leaveIn = (ms: number): void => {
        leaving?.unsubscribe();
        leaving = demand.open$
          .pipe(switchMap((open) => (open ? timer(ms, scheduler) : NEVER)))
          .subscribe({ next: end, error: breakOff });
        subscriber.add(leaving);
      };
      const take = (piece: Piece): void => {
        if (piece.type === 'done') {
          if (!isDone) leaveIn(endMs);
          isDone = true;
        } else if (!isFinished) {
          isFinished = piece.type === 'finish';
          if (isFinished) leaveIn(usageMs);
          subscriber.next(piece);
        } else if (piece.type === 'usage') subscriber.next(piece);
      };
      return source.subscribe({ next: take, error: breakOff, complete: end });
    });

const incomplete = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The answer of ${inside(vendor)} is incomplete: its stream ended without a finish.`,
    { retryable: true },
  );
