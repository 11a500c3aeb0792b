import type { Readable } from 'node:stream';
import { MillraceError } from '@millrace/core';
import {
  asyncScheduler,
  defer,
  finalize,
  fromEvent,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  reduce,
  type SchedulerLike,
  take,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';

/** A question that came through a pipe. */
export interface PipedQuestion {
  /** Empty where there was none. */
  readonly text: string;
  /** Whether nobody wrote, though the pipe is open. */
  readonly silent: boolean;
}

/** How long to wait for a question. */
export interface ReadQuestionOptions {
  /** Milliseconds until the first of it must be there. Default: no limit. */
  readonly patience?: number;
  readonly scheduler?: SchedulerLike;
}

/** Characters that a question may have. */
const longest = 100_000;

/**
 * Reads a question until the input ends, and emits it. `patience` is for a pipe that nobody writes to, and that
 * yet stays open: such as a program has that was started by another one.
 */
export const readQuestion$ = (
  input: Readable,
  { patience, scheduler = asyncScheduler }: ReadQuestionOptions = {},
): Observable<PipedQuestion> =>
  defer(() => {
    input.setEncoding('utf8');
    const data$ = fromEvent(input, 'data');
    const failure$ = fromEvent(input, 'error').pipe(
      mergeMap((error) => throwError(() => toError(error))),
    );
    const end$ = merge(fromEvent(input, 'end'), fromEvent(input, 'close'), failure$);
    const silence$ = patience === undefined ? NEVER : timer(patience, scheduler);
    return merge(
      data$.pipe(
        takeUntil(end$),
        reduce((text, data) => limited(text + String(data)), ''),
        map((text) => ({ text: text.trim(), silent: false })),
      ),
      silence$.pipe(
        takeUntil(data$),
        map(() => ({ text: '', silent: true })),
      ),
    ).pipe(
      take(1),
      finalize(() => input.pause()),
    );
  });

const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

const limited = (text: string): string => {
  if (text.length <= longest) return text;
  throw new MillraceError(
    'tooLarge',
    `The question on stdin is longer than ${longest} characters.`,
  );
};
