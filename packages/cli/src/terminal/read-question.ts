import type { Readable } from 'node:stream';
import { MillraceError } from 'millrace';
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

export interface ReadQuestionOptions {
  /** Called once if the first second brings no input. Default: does nothing. */
  readonly onSilence?: () => void;
  /** The timer of that second. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** Milliseconds without input before `onSilence` is called. */
const silenceMs = 1_000;

/** In characters. */
const maxLength = 100_000;

/** Reads the input until it ends, and emits it as a question; an empty string if the input is empty. */
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
    const silence$ = timer(silenceMs, scheduler).pipe(
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
  if (text.length <= maxLength) return text;
  throw new MillraceError(
    'tooLarge',
    `The question on stdin is longer than ${maxLength} characters.`,
  );
};
