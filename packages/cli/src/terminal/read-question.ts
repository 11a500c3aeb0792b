import type { Readable } from 'node:stream';
import { MillraceError } from '@millrace/core';
import {
  asyncScheduler,
  defer,
  finalize,
  fromEvent,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  reduce,
  type SchedulerLike,
  take,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';

/** What a reader does while nothing comes. */
export interface ReadQuestionOptions {
  /** Called once, when nothing has come for a second. Default: nothing. */
  readonly onSilence?: () => void;
  /** Runs that second. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** Milliseconds without a word until somebody should know what is waited for. */
const longSilence = 1_000;

/** Characters that a question may have. */
const longest = 100_000;

/**
 * Reads a question until the input ends, however late it comes, and emits it; an empty one where the input held
 * none.
 */
export const readQuestion$ = (
  input: Readable,
  { onSilence = () => undefined, scheduler = asyncScheduler }: ReadQuestionOptions = {},
): Observable<string> =>
  defer(() => {
    input.setEncoding('utf8');
    const data$ = fromEvent(input, 'data');
    const failure$ = fromEvent(input, 'error').pipe(
      mergeMap((error) => throwError(() => toError(error))),
    );
    const end$ = merge(fromEvent(input, 'end'), fromEvent(input, 'close'), failure$);
    const silence$ = timer(longSilence, scheduler).pipe(
      takeUntil(data$),
      tap(onSilence),
      ignoreElements(),
    );
    const text$ = data$.pipe(
      takeUntil(end$),
      reduce((text, data) => limited(text + String(data)), ''),
      map((text) => text.trim()),
    );
    return merge(text$, silence$).pipe(
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
