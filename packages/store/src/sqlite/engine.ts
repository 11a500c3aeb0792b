import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers';
import { MillraceError } from 'millrace';
import type { SchedulerLike } from 'rxjs';
import { closed } from '../closing.js';
import { makeDirectory } from '../files/make-directory.js';
import { toStoreError } from '../files/file-system.js';
import { markDirectory } from '../mark-directory.js';
import { sharedAttempt } from '../shared-attempt.js';
import { createPendingWork } from '../sql/pending-work.js';
import type { Answer, Request } from './messages.js';
import type { Operation } from './operation.js';
import type { Operations } from './operations.js';
import { sqliteError } from './sqlite-error.js';
import { createThread } from './thread.js';

type Given<Name extends keyof Operations> =
  Operations[Name] extends Operation<infer Values, unknown> ? Values : never;
type Result<Name extends keyof Operations> =
  Operations[Name] extends Operation<never, infer Value> ? Value : never;

/** A SQLite database in a file. A thread holds the connection, so nothing blocks this one. Opens on first use. */
export interface SqliteEngine {
  /** Runs an operation in the thread. Rejects with a `MillraceError`. */
  run<Name extends keyof Operations>(name: Name, ...given: Given<Name>): Promise<Result<Name>>;
  /** Waits for what is running, ends the thread and releases the file. Later uses reject with `store`. */
  close(): Promise<void>;
}

/** How long an operation is retried while other processes write, in milliseconds. */
const busyMs = 30_000;

/** An operation that is not answered yet. */
interface Waiting extends Request {
  /** When it was asked for, by the scheduler. */
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: MillraceError) => void;
  tries: number;
}

export const sqliteEngine = (path: string, scheduler: SchedulerLike): SqliteEngine => {
  const pending = createPendingWork();
  const requests = createRequests(path, scheduler);
  const prepared = sharedAttempt(() => makeOwnDirectory(dirname(path)));
  let closing: Promise<void> | undefined;
  let hasEnded = false;
  const end = async (): Promise<void> => {
    // Leases are released when what holds them has ended, which may come last, and begins after this.
    await new Promise((resolve) => setImmediate(resolve));
    await pending.settled();
    hasEnded = true;
    await requests.end();
  };
  return {
    run: async (name, ...given) => {
      if (hasEnded) throw closed();
      const result = await pending.track(async () => {
        await prepared();
        return requests.ask(name, given);
      });
      if (!isResult(name, result)) throw new TypeError('unreachable');
      return result;
    },
    close: () => {
      closing ??= end();
      return closing;
    },
  };
};

interface Requests {
  /** Resolves to the result of an operation. Asks again while other processes write. */
  ask(name: string, given: readonly unknown[]): Promise<unknown>;
  end(): Promise<void>;
}

const createRequests = (path: string, scheduler: SchedulerLike): Requests => {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let queue: Waiting[] = [];

  const thread = createThread(path, {
    onAnswers: (answers) => answers.forEach(settle),
    onEnd: (reason) => {
      const lost = [...waiting.values()];
      waiting.clear();
      for (const { reject } of lost) reject(threadLost(path, reason));
    },
  });
  const settle = (answer: Answer): void => {
    const request = waiting.get(answer.id);
    if (request === undefined) return;
    waiting.delete(answer.id);
    if ('result' in answer) request.resolve(ownCopy(answer.result));
    else if (answer.failure.type === 'busy' && scheduler.now() - request.since < busyMs) {
      scheduler.schedule(() => post(request), retryMs(request));
    } else request.reject(sqliteError(path, answer.failure));
  };
  /** The requests of one turn of the event loop are one message. */
  const post = (request: Waiting): void => {
    queue.push(request);
    if (queue.length === 1) setImmediate(flush);
  };
  const flush = (): void => {
    const posted = queue;
    queue = [];
    if (isSent(posted)) return;
    // One request must not fail the others.
    for (const request of posted) {
      if (!isSent([request])) request.reject(sqliteError(path, { type: 'notPlain' }));
    }
  };
  /** Sends requests, unless a value cannot be copied to another thread, such as a function of a program in JavaScript. */
  const isSent = (requests: readonly Waiting[]): boolean => {
    try {
      thread.send(requests.map(({ id, name, given }) => ({ id, name, given })));
    } catch {
      return false;
    }
    for (const request of requests) waiting.set(request.id, request);
    return true;
  };
  return {
    ask: (name, given) =>
      new Promise((resolve, reject) => {
        const since = scheduler.now();
        post({ id: (lastId += 1), name, given, since, resolve, reject, tries: 0 });
      }),
    end: () => thread.end(),
  };
};

/** Makes the directory, and marks it as that of a store if it did not exist. */
const makeOwnDirectory = async (directory: string): Promise<void> => {
  try {
    const exists = existsSync(directory);
    await makeDirectory(directory);
    if (!exists) markDirectory(directory);
  } catch (error) {
    throw toStoreError(directory)(error);
  }
};

/**
 * A result with prototypes of this context. Threads copy values with those of the main context, which are others in a
 * program that runs in a context of its own, such as a test of Jest.
 */
const ownCopy = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || value instanceof Object) return value;
  if (Array.isArray(value)) return Array.from(value, ownCopy);
  if (ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, ownCopy(field)]));
};

/** The types of both threads are those of the operations. */
const isResult = <Name extends keyof Operations>(
  _name: Name,
  _result: unknown,
): _result is Result<Name> => true;

/** The delay before the next attempt, up to 16 ms: another process holds the lock for one sync of the disk. */
const retryMs = (request: Waiting): number => {
  request.tries += 1;
  const most = 2 ** Math.min(request.tries, 4);
  return 1 + Math.random() * (most - 1);
};

const threadLost = (path: string, reason: string): MillraceError =>
  new MillraceError(
    'store',
    `The database ${path} failed: its thread has ended (${reason}). Whether this operation was done is not known. The next use starts the thread again.`,
    { retryable: true },
  );
