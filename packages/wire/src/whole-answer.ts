import { MillraceError, type ModelChunk, type ModelContext } from '@millrace/core';
import {
  catchError,
  concat,
  connect,
  defer,
  distinct,
  EMPTY,
  filter,
  NEVER,
  type Observable,
  type OperatorFunction,
  switchMap,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import type { Piece } from './decode.js';
import { inside } from './inside.js';

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
export const wholeAnswer = (
  vendor: string,
  { demand, scheduler }: Pick<ModelContext, 'demand' | 'scheduler'>,
  fail: (thrown: unknown) => MillraceError,
): OperatorFunction<Piece, ModelChunk> => {
  const over$ = (piece$: Observable<Piece>): Observable<unknown> =>
    piece$.pipe(
      filter(({ type }) => type === 'finish' || type === 'done'),
      distinct(({ type }) => type),
      switchMap(({ type }) =>
        demand.open$.pipe(
          switchMap((open) => (open ? timer(type === 'done' ? endMs : usageMs, scheduler) : NEVER)),
        ),
      ),
    );
  return (source) =>
    defer(() => {
      let isFinished = false;
      const isWanted = (piece: Piece): piece is ModelChunk => {
        if (piece.type === 'done') return false;
        if (isFinished) return piece.type === 'usage';
        isFinished = piece.type === 'finish';
        return true;
      };
      return concat(
        source.pipe(
          connect((piece$) => piece$.pipe(takeUntil(over$(piece$)))),
          filter(isWanted),
          catchError((thrown: unknown) => (isFinished ? EMPTY : throwError(() => fail(thrown)))),
        ),
        defer(() => (isFinished ? EMPTY : throwError(() => fail(incomplete(vendor))))),
      );
    });
};

const incomplete = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The answer of ${inside(vendor)} is incomplete: its stream ended without a finish.`,
    { retryable: true },
  );
