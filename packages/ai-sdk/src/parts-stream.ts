import { type Demand, fromPull, MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  connect,
  filter,
  merge,
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
  switchMap,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import { isFinishPart } from './answer-end.js';

type Reader = ReadableStreamDefaultReader<unknown>;

/** Sends a request; the signal aborts it. */
export type Start = (signal: AbortSignal) => PromiseLike<{ readonly stream: unknown }>;

/**
 * The parts of an answer. Cold: subscribing sends the request once demand is open, and unsubscribing aborts it and cancels its
 * stream. Reads the next part only while demand is open. Completes with the stream, 50 milliseconds after the finish part, or 200
 * after a failure.
 */
export const parts$ = (
  start: Start,
  { demand, scheduler }: { readonly demand: Demand; readonly scheduler: SchedulerLike },
  isFailure: (part: unknown) => boolean,
): Observable<unknown> =>
  fromPull((signal) => partsOf(start, signal), demand).pipe(endInTime(scheduler, isFailure));

/** The end of the response lets its socket be used again, and the finish part after a failure has the usage. */
const endMs = { finish: 50, failure: 200 };

/** Completes 50 milliseconds after the finish part, or 200 after a failure, if the source does not. */
export const endInTime = (
  scheduler: SchedulerLike,
  isFailure: (part: unknown) => boolean,
): MonoTypeOperatorFunction<unknown> =>
  connect((part$) =>
    part$.pipe(
      takeUntil(
        merge(
          after(part$.pipe(filter(isFinishPart)), endMs.finish, scheduler),
          after(part$.pipe(filter(isFailure)), endMs.failure, scheduler),
        ),
      ),
    ),
  );

/** Emits after the first part, however many follow. */
const after = (
  part$: Observable<unknown>,
  ms: number,
  scheduler: SchedulerLike,
): Observable<unknown> =>
  part$.pipe(
    take(1),
    switchMap(() => timer(ms, scheduler)),
  );

const partsOf = (start: Start, signal: AbortSignal): AsyncIterable<unknown> => {
  let opened: Promise<Reader> | undefined;
  const open = (): Promise<Reader> =>
    (opened ??= Promise.resolve(start(signal)).then(({ stream }) => readerOf(stream, signal)));
  return {
    [Symbol.asyncIterator]: () => ({ next: () => open().then((reader) => reader.read()) }),
  };
};

const readerOf = (stream: unknown, signal: AbortSignal): Reader => {
  if (!isStream(stream)) {
    throw new MillraceError(
      'config',
      "The model's doStream() did not resolve to a stream: use a model of @ai-sdk/provider 3 or 4.",
    );
  }
  const reader = stream.getReader();
  const cancel = (): void => {
    reader.cancel().catch(() => undefined);
  };
  // It may have been left while the request was sent.
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return reader;
};

const isStream = (stream: unknown): stream is ReadableStream<unknown> =>
  isRecord(stream) && typeof stream['getReader'] === 'function';
