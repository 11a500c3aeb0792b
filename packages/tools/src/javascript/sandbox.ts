import { Worker } from 'node:worker_threads';
import { MillraceError, toolOutput, type ToolOutput } from 'millrace';
import { isRecord, type Rule } from 'millrace/values';
import { EMPTY, map, Observable, type SchedulerLike, timer } from 'rxjs';
import type { SandboxMessage, SandboxResults, SandboxTask } from './sandbox.worker.js';

/** How code has ended, with what it has logged. */
export interface Outcome {
  readonly type: 'result' | 'failure';
  readonly text: string;
  readonly logged: string;
}

export const memoryRule: Rule = [
  (value) => Number.isInteger(value) && Number(value) >= 32 && Number(value) <= 1_024,
  'a whole number from 32 to 1,024',
];

type Last = Extract<SandboxMessage, { type: 'result' | 'failure' }>;

const failure = (text: string): Last => ({ type: 'failure', text });

/** Emits a failure after some time. */
export const tooSlow$ = (timeoutMs: number, scheduler: SchedulerLike): Observable<Last> =>
  timer(timeoutMs, scheduler).pipe(
    map(() => failure(`The code was stopped after ${timeoutMs} ms.`)),
  );

export const outputOf = ({ type, text, logged: all }: Outcome): ToolOutput => {
  const logged = all.trimEnd();
  const isError = type === 'failure';
  const isOnlyLogged = !isError && logged !== '' && text === 'undefined';
  const last = `${isError ? 'Error' : 'Result'}: ${text}`;
  const content = isOnlyLogged ? logged : logged === '' && !isError ? text : `${logged}\n\n${last}`;
  return toolOutput({
    content: content.trim(),
    isError,
    details: { logged, ...(isError ? { error: text } : { result: text }) },
  });
};

export const notInstalled = (owner: string): MillraceError =>
  new MillraceError(
    'config',
    `${owner} needs its sandbox: npm install quickjs-emscripten-core@0.32.0 @jitl/quickjs-wasmfile-release-sync@0.32.0`,
  );

/**
 * Emits what a thread posts, or a failure if the thread ends without one. Results of the tools that the code called are
 * passed on while the code waits for that round of them, once. The path leads to the bundle from the sources as well:
 * both are two levels below the package.
 */
export const sandbox$ = (
  task: SandboxTask,
  results$: Observable<SandboxResults> = EMPTY,
): Observable<SandboxMessage> =>
  new Observable((subscriber) => {
    const thread = new Worker(new URL('../../dist/bundle/sandbox.worker.js', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    let awaited: number | undefined;
    const fail = (): void => subscriber.next(failure(crashed));
    thread.on('message', (message: unknown) => {
      if (!isMessage(message)) return;
      if (message.type === 'calls') awaited = message.round;
      subscriber.next(message);
    });
    thread.once('error', fail);
    thread.once('exit', fail);
    subscriber.add(
      results$.subscribe({
        next: (results) => {
          if (results.round !== awaited) return;
          awaited = undefined;
          thread.postMessage(results);
        },
        error: (error: unknown) => subscriber.error(error),
      }),
    );
    return () => void thread.terminate();
  });

const crashed = 'The sandbox crashed: the code used too much memory, or is nested too deeply.';

/** Its program has checked the rest. */
const isMessage = (value: unknown): value is SandboxMessage =>
  isRecord(value) && typeof value['type'] === 'string';
