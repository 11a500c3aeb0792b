import { Worker } from 'node:worker_threads';
import { isRecord } from 'millrace/values';
import {
  asyncScheduler,
  defer,
  filter,
  finalize,
  interval,
  map,
  Observable,
  race,
  timer,
} from 'rxjs';

export interface Converted {
  readonly text: string;
  readonly title: string;
  readonly pages?: readonly number[] | undefined;
}

export interface ConverterLimits {
  readonly timeoutMs: number;
  readonly maxMemory: number;
}

/** Converts files in a thread, which starts with the first one. */
export interface Converter {
  /** Emits the text, and completes. Errors if the file is broken or exceeds a limit. Unsubscribing ends the thread. */
  convert$(type: 'html' | 'pdf', bytes: Uint8Array<ArrayBuffer>): Observable<Converted>;
  close(): void;
}

export const createConverter = ({ timeoutMs, maxMemory }: ConverterLimits): Converter => {
  let thread: Worker | undefined;
  let isBusy = false;
  const close = (): void => {
    void thread?.terminate();
    thread = undefined;
    isBusy = false;
  };
  const start = (): Worker => {
    const worker = startThread(maxMemory);
    const forget = (): void => {
      if (thread === worker) thread = undefined;
    };
    // A thread that fails between two files has no other listener: its error would end the process.
    return worker.on('error', forget).on('exit', forget);
  };
  const answer$ = (type: string, bytes: Uint8Array<ArrayBuffer>): Observable<Converted> =>
    new Observable((subscriber) => {
      const worker = (thread ??= start());
      const fail = (error: unknown): void => subscriber.error(new Error(failureOf(error)));
      const take = (result: unknown): void => {
        isBusy = false;
        if (isConverted(result)) subscriber.next(result);
        else fail(result);
        subscriber.complete();
      };
      worker.once('message', take).once('error', fail).once('exit', fail);
      isBusy = true;
      worker.postMessage({ type, bytes }, [bytes.buffer]);
      return () => {
        worker.off('message', take).off('error', fail).off('exit', fail);
      };
    });
  return {
    close,
    convert$: (type, bytes) =>
      race(answer$(type, bytes), tooSlow$(timeoutMs), tooLarge$(maxMemory)).pipe(
        finalize(() => {
          // A thread in the middle of a file cannot be used for another one.
          if (isBusy) close();
        }),
      ),
  };
};

const failureOf = (thrown: unknown): string => {
  if (!isRecord(thrown)) return 'its thread has ended';
  if (thrown['code'] === 'ERR_WORKER_OUT_OF_MEMORY') return 'it needs too much memory';
  const { message } = thrown;
  return typeof message === 'string' ? message : 'it cannot be converted';
};

const tooSlow$ = (timeoutMs: number): Observable<never> =>
  timer(timeoutMs, asyncScheduler).pipe(
    map((): never => {
      throw new Error(`it takes longer than ${timeoutMs} ms (timeoutMs)`);
    }),
  );

/** How often the memory of the process is read, in milliseconds. */
const memoryMs = 50;

const megabyte = 2 ** 20;

/** Buffers are outside the heap that a thread can limit, so the growth of the process is watched as well. */
const tooLarge$ = (maxMemory: number): Observable<never> =>
  defer(() => {
    let least = process.memoryUsage.rss();
    return interval(memoryMs, asyncScheduler).pipe(
      filter(() => {
        const now = process.memoryUsage.rss();
        // Memory that is freed meanwhile would hide the growth.
        least = Math.min(least, now);
        return now - least > maxMemory;
      }),
      map((): never => {
        const most = Math.round(maxMemory / megabyte);
        throw new Error(`it needs more than ${most} MB of memory (maxMemory)`);
      }),
    );
  });

/** The path leads to the bundle from the sources as well: both are two levels below the package. */
const startThread = (maxMemory: number): Worker =>
  new Worker(new URL('../../dist/bundle/read-document.worker.js', import.meta.url), {
    resourceLimits: {
      maxOldGenerationSizeMb: Math.ceil(maxMemory / megabyte),
      maxYoungGenerationSizeMb: 64,
      stackSizeMb: 4,
    },
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
  });

const isConverted = (value: unknown): value is Converted =>
  isRecord(value) && typeof value['title'] === 'string' && typeof value['text'] === 'string';
