import type { Writable } from 'node:stream';
import { MillraceError } from 'millrace';
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
  stream.on('error', (error) => broken$.error(outputError(error)));
  return { stream, broken$: broken$.asObservable() };
};

/** Whether the reader of a pipe has exited, as `head` does after its last line. */
export const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(String(Reflect.get(error, 'code')));

/** Resolves when all output is flushed, or its reader has exited. Rejects if some of it is lost, as on a full disk. */
export const flush = ({ stream }: Output): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      const { errored } = stream;
      if (errored === null || isBrokenPipe(errored)) resolve();
      else reject(outputError(errored));
    };
    if (stream.destroyed) end();
    else stream.write('', end);
  });

const outputError = (error: Error): Error => {
  if (isBrokenPipe(error)) return error;
  const code = String(Reflect.get(error, 'code') ?? error.message);
  return new MillraceError(
    'config',
    `The output is incomplete: it could not be written (${code}). Write it to another place, or free some space.`,
    { cause: error },
  );
};
