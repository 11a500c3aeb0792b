import type { Writable } from 'node:stream';
import { type Observable, ReplaySubject } from 'rxjs';

/** An output that may break, as a pipe does when its reader leaves. */
export interface Output {
  readonly stream: Writable;
  /** Errors when the output does; never emits, never completes. */
  readonly broken$: Observable<never>;
}

/** Watches an output for good: an error that comes late must not end the process with a stack. */
export const watchOutput = (stream: Writable): Output => {
  const broken$ = new ReplaySubject<never>(1);
  stream.on('error', (error) => broken$.error(error));
  return { stream, broken$: broken$.asObservable() };
};

/** Tells whether an error says that the reader of a pipe has left, as `head` does when it has enough. */
export const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(String(Reflect.get(error, 'code')));

/** Resolves when all that was written has left, or cannot any more. */
export const flush = ({ stream }: Output): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write('', () => resolve());
  });
