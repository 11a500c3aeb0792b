import type { Observable } from 'rxjs';
import type { Demand } from '../demand.js';
import { checkOptions, numberFrom } from '../options.js';
import { pullFrom } from './pull-from.js';

/** How far the source of a ReadableStream may be ahead of its reader. */
export interface ReadableStreamOptions {
  /** Values that may wait for the reader before the source is paused; it goes on at half of it. Default: 64. */
  readonly highWaterMark?: number;
}

/**
 * Makes a WHATWG ReadableStream of an Observable: the sink for HTTP responses and `pipeThrough`. It subscribes
 * at the first read; values that wait for the reader close the demand that `open` is handed, so that the source
 * itself is paused; `cancel()` unsubscribes at once. An error of the Observable errors the stream, behind what
 * waits.
 */
export const toReadableStream = <T>(
  open: (demand: Demand) => Observable<T>,
  options: ReadableStreamOptions = {},
): ReadableStream<T> => {
  checkOptions('toReadableStream()', options, { highWaterMark: numberFrom(1) });
  const puller = pullFrom(open, options.highWaterMark);
  return new ReadableStream<T>(
    {
      pull: (controller) =>
        puller.next().then((result) => {
          if (result.done === true) controller.close();
          else controller.enqueue(result.value);
        }),
      cancel: () => puller.return().then(() => undefined),
    },
    // What waits is counted once, in front of it: a queue of the stream's own would hide from the demand.
    { highWaterMark: 0 },
  );
};
