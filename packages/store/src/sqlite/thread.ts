import { Worker } from 'node:worker_threads';
import type { Answer, Request } from './messages.js';
import { fieldOf } from './field-of.js';

/** The thread of a database. Starts with the first message. */
export interface Thread {
  send(requests: readonly Request[]): void;
  /** Lets the thread finish, and resolves when it has released the file. */
  end(): Promise<void>;
}

export interface ThreadListener {
  readonly onAnswers: (answers: readonly Answer[]) => void;
  /** The thread has ended before it has answered everything. */
  readonly onEnd: (reason: string) => void;
}

export const createThread = (path: string, { onAnswers, onEnd }: ThreadListener): Thread => {
  let worker: Worker | undefined;
  let unanswered = 0;
  let isEnding = false;
  const start = (): Worker => {
    const started = new Worker(
      // Leads to the bundle from the sources as well: both are two levels below the package.
      new URL('../../dist/bundle/sqlite.worker.js', import.meta.url),
      { execArgv: [], workerData: { path } },
    );
    let reason = 'it was stopped';
    started.on('message', (answers: readonly Answer[]) => {
      unanswered -= answers.length;
      // It keeps the process alive only while someone waits for an answer.
      if (unanswered === 0 && !isEnding) started.unref();
      onAnswers(answers);
    });
    started.on('error', (error: unknown) => {
      reason = String(fieldOf(error, 'message'));
    });
    started.once('exit', () => {
      if (worker !== started) return;
      worker = undefined;
      unanswered = 0;
      onEnd(reason);
    });
    // Last: a listener for messages keeps the process alive, too.
    started.unref();
    return started;
  };
  return {
    send: (requests) => {
      worker ??= start();
      worker.postMessage(requests);
      if (unanswered === 0) worker.ref();
      unanswered += requests.length;
    },
    end: async () => {
      const ending = worker;
      if (ending === undefined) return;
      isEnding = true;
      ending.ref();
      const exit = new Promise((resolve) => ending.once('exit', resolve));
      ending.postMessage('close');
      await exit;
    },
  };
};
