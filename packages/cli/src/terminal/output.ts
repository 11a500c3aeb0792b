import type { Writable } from 'node:stream';
import { type Observable, ReplaySubject } from 'rxjs';

/** An output that may fail, such as a pipe whose reader exits. */
export interface Output {
  readonly stream: Writable;
  /** Errors when the output does; never emits, never completes. */
  readonly broken$: Observable<never>;
}

/** Watches an output until the process exits, as a late error must not crash it. */
export const watchOutput = (stream: Writable): Output => {
  const broken$ = new ReplaySubject<never>(1);
  stream.on('error', (error) => broken$.error(error));
  return { stream, broken$: broken$.asObservable() };
};

/** Whether the reader of a pipe has exited, as `head` does after its last line. */
export const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(String(Reflect.get(error, 'code')));

/** Resolves when all output is flushed, or the stream is destroyed. */
export const flush = ({ stream }: Output): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
