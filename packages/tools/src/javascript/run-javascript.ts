import { Worker } from 'node:worker_threads';
import { MillraceError, tool, type Tool, toolOutput, type ToolOutput } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { checkOptions, isDelay, isRecord, type Rule, wholeNumber } from '@millrace/core/values';
import { defer, map, merge, Observable, type SchedulerLike, takeWhile, timer } from 'rxjs';
import type { SandboxMessage, SandboxTask } from './sandbox.worker.js';

/** Options of `runJavaScript`. */
export interface RunJavaScriptOptions {
  /** The maximum duration, with the start of the sandbox, in milliseconds. Default: 5,000. */
  readonly timeoutMs?: number;
  /** The memory of the sandbox in MiB, 32 to 1,024. Default: 64. */
  readonly memoryMb?: number;
  /** The maximum number of characters that are logged, and of the result, 100 or more each. Default: 10,000. */
  readonly maxLength?: number;
}

/**
 * Creates the tool `run_javascript`, which runs JavaScript in a sandbox and returns what it logs and its result.
 *
 * The code runs in QuickJS, compiled to WebAssembly, in a thread of its own: it has the language, and no network, files,
 * modules, timers or objects of the process. Each run starts with a new sandbox. It streams what is logged. An error of
 * the code, too much time or too much memory is a result with `isError`. Its `details` have `logged`, `result` or
 * `error`. Unsubscribing ends the thread. Errors with `config` if the packages of the sandbox are not installed.
 */
export const runJavaScript = (options: RunJavaScriptOptions = {}): Tool => {
  checkOptions('runJavaScript()', options, rules);
  const { timeoutMs = 5_000, memoryMb = 64, maxLength = 10_000 } = options;
  return tool({
    name: 'run_javascript',
    idempotent: true,
    description:
      'Runs JavaScript in a sandbox and returns what it logs with console.log and the value of its last expression. ' +
      'Use it to compute: numbers, dates, text, sorting, algorithms. There is no network, no file system, no import ' +
      'and no timer, and nothing is kept between runs.',
    input: jsonSchema({
      type: 'object',
      properties: {
        code: {
          type: 'string',
          minLength: 1,
          maxLength: 100_000,
          description: 'The code, a script. It may use await and return.',
          examples: ['[3, 1, 2].toSorted().join()', 'const x = 2 ** 64; console.log(x); return x'],
        },
      },
      required: ['code'],
      additionalProperties: false,
    }),
    run: ({ code }, { scheduler }) => run$({ code, memoryMb, maxLength }, timeoutMs, scheduler),
  });
};

const rules: Readonly<Record<keyof RunJavaScriptOptions, Rule>> = {
  timeoutMs: isDelay,
  memoryMb: [
    (value) => Number.isInteger(value) && Number(value) >= 32 && Number(value) <= 1_024,
    'a whole number from 32 to 1,024',
  ],
  maxLength: wholeNumber(100),
};

/** Emits what is logged, then the output. */
const run$ = (
  task: SandboxTask,
  timeoutMs: number,
  scheduler: SchedulerLike,
): Observable<string | ToolOutput> =>
  defer(() => {
    const logged: string[] = [];
    const tooSlow$ = timer(timeoutMs, scheduler).pipe(
      map(() => failure(`The code was stopped after ${timeoutMs} ms.`)),
    );
    return merge(sandbox$(task), tooSlow$).pipe(
      takeWhile(({ type }) => type === 'log', true),
      map((message) => {
        if (message.type !== 'log') return outputOf(message, logged.join('').trimEnd());
        logged.push(message.text);
        return message.text;
      }),
    );
  });

const failure = (text: string): SandboxMessage => ({ type: 'failure', text });

const outputOf = (message: SandboxMessage, logged: string): ToolOutput => {
  if (message.type === 'notInstalled') throw notInstalled();
  const isError = message.type === 'failure';
  const { text } = message;
  const isOnlyLogged = !isError && logged !== '' && text === 'undefined';
  const last = `${isError ? 'Error' : 'Result'}: ${text}`;
  const content = isOnlyLogged ? logged : logged === '' && !isError ? text : `${logged}\n\n${last}`;
  return toolOutput({
    content: content.trim(),
    isError,
    details: { logged, ...(isError ? { error: text } : { result: text }) },
  });
};

const notInstalled = (): MillraceError =>
  new MillraceError(
    'config',
    'runJavaScript() needs its sandbox: npm install quickjs-emscripten-core@0.32.0 @jitl/quickjs-wasmfile-release-sync@0.32.0',
  );

/**
 * Emits what a thread posts, or a failure if the thread ends without one. The path leads to the bundle from the sources
 * as well: both are two levels below the package.
 */
const sandbox$ = (task: SandboxTask): Observable<SandboxMessage> =>
  new Observable((subscriber) => {
    const thread = new Worker(new URL('../../dist/bundle/sandbox.worker.js', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    const fail = (): void => subscriber.next(failure(crashed));
    thread.on('message', (message: unknown) => {
      if (isMessage(message)) subscriber.next(message);
    });
    thread.once('error', fail);
    thread.once('exit', fail);
    return () => void thread.terminate();
  });

const crashed = 'The sandbox crashed: the code used too much memory, or is nested too deeply.';

const isMessage = (value: unknown): value is SandboxMessage =>
  isRecord(value) && (value['type'] === 'notInstalled' || typeof value['text'] === 'string');
