// The program of a thread: holds the connection to a database file, and runs the operations that it gets.
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { failureOf, KnownFailure } from './failure.js';
import type { Answer, Request } from './messages.js';
import { type DatabaseFile, openDatabase } from './open-database.js';
import { operations } from './operations.js';
import { runBatch } from './run-batch.js';
import { fieldOf } from './field-of.js';
import { loadDriver } from './sqlite-driver.js';

type Message = readonly Request[] | 'close';

const isMessage = (value: unknown): value is Message => value === 'close' || Array.isArray(value);

const start = async (port: MessagePort, path: string): Promise<void> => {
  const driver = await loadDriver();
  const state: { file?: DatabaseFile; wasOpen: boolean } = { wasOpen: false };

  const opened = (): DatabaseFile => {
    if (driver === undefined) throw new KnownFailure({ type: 'noDriver' });
    // A file that was put in the place of ours is another database.
    if (state.file?.isInPlace() === false) close();
    state.file ??= openDatabase(driver, path, !state.wasOpen);
    state.wasOpen = true;
    return state.file;
  };
  const close = (): void => {
    const { file } = state;
    delete state.file;
    file?.database.close();
  };
  const run = (requests: readonly Request[]): void => {
    const answered: Answer[] = [];
    const answer = (answers: readonly Answer[]): void => {
      port.postMessage(answers);
      answered.push(...answers);
    };
    try {
      runBatch(opened().database, requests, operations, answer);
    } catch (error) {
      const failure = failureOf(error);
      answer(requests.map(({ id }) => ({ id, failure })));
    }
    // After such a failure, the connection may be in any state.
    if (answered.some((it) => 'failure' in it && it.failure.type === 'sqlite')) close();
  };
  port.on('message', (first: Message) => {
    const messages: Message[] = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      if (isMessage(next.message)) messages.push(next.message);
    }
    const requests = messages.flatMap((message) => (message === 'close' ? [] : message));
    if (requests.length > 0) run(requests);
    if (messages.includes('close')) {
      close();
      port.close();
    }
  });
};

const given: unknown = workerData;
if (parentPort !== null) void start(parentPort, String(fieldOf(given, 'path')));
