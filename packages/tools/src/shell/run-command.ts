import { type ChildProcess, spawn } from 'node:child_process';
import { env as ownEnvironment, kill, platform } from 'node:process';
import {
  type Approver,
  requireApproval,
  tool,
  type Tool,
  type ToolContext,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  checkOptions,
  isDelay,
  isText,
  type Rule,
  untrustedText,
  wholeNumber,
} from 'millrace/values';
import { mergeMap, Observable, takeUntil, throwError, timer } from 'rxjs';

/** Options of `runCommand`. */
export interface RunCommandOptions {
  /** The programs that may run: names that the `PATH` leads to, or absolute paths. */
  readonly commands: readonly string[];
  /** Decides on each command; `true` allows all of these programs with any arguments. */
  readonly approve: boolean | Approver;
  /** The working directory. Default: that of the process, at each run. */
  readonly directory?: string | undefined;
  /** The names of the environment variables to pass. Default: `PATH`, `HOME`, `LANG`, `LC_ALL`, `TZ` and `TMPDIR`. */
  readonly environment?: readonly string[] | undefined;
  /** The maximum number of characters of output; the middle of longer output is dropped. Default: 10,000. */
  readonly maxLength?: number | undefined;
  /** The maximum duration, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Creates the tool `run_command`, which runs a program without a shell, after approval.
 *
 * It streams the output, as fast as it is consumed, and returns it with the exit code; a code other than 0 is no error.
 * The program has no input. It ends with its process group, when it exits, is too slow, or the caller unsubscribes. The
 * list of programs is not a sandbox: many programs can start others.
 */
export const runCommand = (options: RunCommandOptions): Tool => {
  checkOptions('runCommand()', options, rules, ['commands', 'approve']);
  const { commands, approve, timeoutMs = 30_000 } = options;
  const command = tool({
    name: 'run_command',
    description:
      `Runs a program and returns its output and exit code. There is no shell: no pipes, redirections, variables or ` +
      `wildcards. The programs are: ${commands.join(', ')}.`,
    input: jsonSchema({
      type: 'object',
      properties: {
        command: { type: 'string', enum: commands, description: 'The program.' },
        args: {
          type: 'array',
          maxItems: 200,
          items: { type: 'string', maxLength: 20_000 },
          description: 'The arguments, each as one string without quotes. Default: none.',
          examples: [['status', '--short']],
        },
      },
      required: ['command'],
      additionalProperties: false,
    }),
    run: (input, context) =>
      output$(input.command, input.args ?? [], options, context).pipe(
        takeUntil(
          timer(timeoutMs, context.scheduler).pipe(
            mergeMap(() =>
              throwError(() => new Error(`The program was stopped after ${timeoutMs} ms.`)),
            ),
          ),
        ),
      ),
  });
  return requireApproval(command, approve);
};

const isListOfNames: Rule = [
  (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== ''),
  'a list of names',
];

const rules: Readonly<Record<keyof RunCommandOptions, Rule>> = {
  commands: [
    (value) => isListOfNames[0](value) && Array.isArray(value) && value.length > 0,
    'a list of one or more programs',
  ],
  approve: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'an approver function, or true to allow every command',
  ],
  directory: isText,
  environment: isListOfNames,
  maxLength: wholeNumber(100),
  timeoutMs: isDelay,
};

const harmless = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

/**
 * Emits the output of a program in chunks, then the result. While demand is closed, the output stays in the pipe, and
 * the program waits once it is full. When the program ends, Node reads the rest of the pipe in any case.
 */
const output$ = (
  command: string,
  args: readonly string[],
  { directory, environment = harmless, maxLength = 10_000 }: RunCommandOptions,
  { demand, scheduler }: Pick<ToolContext, 'demand' | 'scheduler'>,
): Observable<string | ToolOutput> =>
  new Observable((subscriber) => {
    const child = spawn(command, args, {
      ...(directory !== undefined && { cwd: directory }),
      env: Object.fromEntries(environment.map((name) => [name, ownEnvironment[name]])),
      // A process group of its own.
      detached: platform !== 'win32',
      shell: false,
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    const output = createExcerpt(maxLength);
    const streams = [child.stdout, child.stderr];
    for (const stream of streams) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output.add(chunk);
        subscriber.next(chunk);
      });
    }
    subscriber.add(
      demand.open$.subscribe({
        next: (isOpen) => streams.forEach((each) => (isOpen ? each.resume() : each.pause())),
        error: (cause: unknown) => subscriber.error(cause),
      }),
    );
    child.once('error', (cause) =>
      subscriber.error(new Error(`The program '${command}' cannot be started.`, { cause })),
    );
    const close = (): void => streams.forEach((stream) => stream.destroy());
    // Programs that it has started may keep the output open: those of its group end, and others lose it.
    child.once('exit', () => {
      endGroup(child);
      const over$ = timer(restMs, scheduler);
      subscriber.add(over$.subscribe({ next: close, error: close }));
    });
    child.once('close', (code, signal) => {
      subscriber.next(resultOf(output.text(), code, signal));
      subscriber.complete();
    });
    return () => {
      // Later, another group may have its id.
      if (child.exitCode === null && child.signalCode === null) endGroup(child);
      close();
    };
  });

/** The time to read what a program has left in its pipes, in milliseconds. */
const restMs = 200;

const endGroup = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return;
  try {
    kill(platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // All have ended already.
  }
};

const resultOf = (
  output: string,
  code: number | null,
  signal: NodeJS.Signals | null,
): ToolOutput => {
  const end = signal === null ? `Exit code ${code ?? 0}` : `Terminated by ${signal}`;
  return toolOutput({
    content: `${output === '' ? '(no output)' : untrustedText(output.trimEnd())}\n\n[${end}.]`,
    details: { code, signal },
  });
};

/** Collects the beginning and the end of an output of any length. */
const createExcerpt = (maxLength: number) => {
  const half = Math.floor(maxLength / 2);
  let start = '';
  let end = '';
  let dropped = 0;
  return {
    add: (chunk: string): void => {
      const room = half - start.length;
      start += chunk.slice(0, room);
      const rest = end + chunk.slice(room);
      end = rest.slice(-half);
      dropped += rest.length - end.length;
    },
    text: (): string =>
      dropped === 0 ? start + end : `${start}\n[… ${dropped} characters …]\n${end}`,
  };
};
