import { tool, type Tool, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, isDelay, type Rule, wholeNumber } from 'millrace/values';
import { defer, map, merge, type Observable, type SchedulerLike, takeWhile } from 'rxjs';
import { memoryRule, notInstalled, outputOf, sandbox$, tooSlow$ } from './sandbox.js';
import type { SandboxTask } from './sandbox.worker.js';

/** Options of `runJavaScript`. */
export interface RunJavaScriptOptions {
  /** The maximum duration, with the start of the sandbox, in milliseconds. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
  /** The memory of the sandbox in MiB, 32 to 1,024. Default: 64. */
  readonly memoryMb?: number | undefined;
  /** The maximum number of characters that are logged, and of the result, 100 or more each. Default: 10,000. */
  readonly maxLength?: number | undefined;
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
  memoryMb: memoryRule,
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
    return merge(sandbox$(task), tooSlow$(timeoutMs, scheduler)).pipe(
      takeWhile(({ type }) => type === 'log', true),
      map((message) => {
        switch (message.type) {
          case 'log':
            logged.push(message.text);
            return message.text;
          case 'result':
          case 'failure':
            return outputOf({ ...message, logged: logged.join('') });
          default:
            // This code has no tools, so it calls none.
            throw notInstalled('runJavaScript()');
        }
      }),
    );
  });
