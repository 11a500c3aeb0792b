import type { Observable } from 'rxjs';
import { type Demand, openDemand } from '../flow/demand.js';
import { fromPull } from '../flow/from-pull.js';
import { pullFrom } from '../flow/pull-from.js';
import { misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isFunction, numberFrom, type Rule } from '../values/options.js';
import { type StreamEnd, streamOf } from '../values/watch-stream.js';

/**
 * Turns a WHATWG ReadableStream into an Observable that reads only while demand is open (default: always). Cold; unsubscribing cancels the stream. A stream can be read once: pass a function that opens one to subscribe more than once. A locked or used stream is a `config` error.
 */
export const fromReadableStream = <T>(
  source: ReadableStream<T> | (() => ReadableStream<T>),
  demand: Demand = openDemand,
): Observable<T> => {
  if (typeof source !== 'function') refuseNoStream(source);
  return fromPull((signal) => {
    const stream = typeof source === 'function' ? source() : source;
    refuseNoStream(stream);
    return chunksOf(take(stream), signal);
  }, demand);
};

/** Streams that were read: a second reader would only see the end. */
const taken = new WeakSet<ReadableStream>();

const take = <T>(stream: ReadableStream<T>): ReadableStreamDefaultReader<T> => {
  if (taken.has(stream)) {
    throw misuse(
      'fromReadableStream(): the stream has been read already. Pass a function that opens one for each subscription.',
    );
  }
  if (stream.locked) {
    throw misuse(
      'fromReadableStream(): the stream is locked by another reader. Pass one without another reader.',
    );
  }
  taken.add(stream);
  return stream.getReader();
};

const chunksOf = <T>(
  reader: ReadableStreamDefaultReader<T>,
  signal: AbortSignal,
): AsyncIterable<T> => {
  const leave = (): void => {
    reader.cancel().catch(() => undefined);
    reader.releaseLock();
  };
  signal.addEventListener('abort', leave, { once: true });
  const next = (): Promise<IteratorResult<T, undefined>> =>
    reader.read().then(
      (result) => {
        if (!result.done) return result;
        reader.releaseLock();
        return { done: true, value: undefined };
      },
      (error: unknown) => {
        reader.releaseLock();
        throw error;
      },
    );
  return { [Symbol.asyncIterator]: () => ({ next }) };
};

const refuseNoStream = (stream: unknown): void => {
  if (isRecord(stream) && typeof stream['getReader'] === 'function') return;
  throw misuse(
    'fromReadableStream() needs a ReadableStream, such as the body of a Response, or a function that opens one.',
  );
};

export interface ReadableStreamOptions {
  /** Number of waiting values at which the source is paused, until half of them are read. Default: 64. */
  readonly highWaterMark?: number | undefined;
  /** Called once, at the end of the stream, even if it is cancelled before the first read. Default: none. */
  readonly onEnd?: ((how: StreamEnd) => void) | undefined;
}

/**
 * Turns an Observable into a WHATWG ReadableStream, such as the body of an HTTP response. It subscribes on the first read; waiting values close the demand that `open` gets, which pauses the source; `cancel()` unsubscribes. An error of the Observable errors the stream after the values that wait.
 */
export const toReadableStream = <T>(
  open: (demand: Demand) => Observable<T>,
  options: ReadableStreamOptions = {},
): ReadableStream<T> => {
  checkOptions('toReadableStream()', options, rules);
  const puller = pullFrom(open, options.highWaterMark);
  return streamOf<T>(
    { next: () => puller.next(), leave: () => puller.return().then(() => undefined) },
    options.onEnd,
  );
};

const rules: Readonly<Record<keyof ReadableStreamOptions, Rule>> = {
  highWaterMark: numberFrom(1),
  onEnd: isFunction,
};
