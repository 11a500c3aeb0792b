import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { textOf, type ToolOutput } from 'millrace';
import { isDelay, isFlag, isRecord, isText, type Rule, wholeNumber } from 'millrace/values';
import { type ConfinedEntry, confinedFiles } from '@millrace/tools/files';
import { runCommand } from '@millrace/tools/shell';
import {
  concatMap,
  defer,
  filter,
  finalize,
  map,
  merge,
  type Observable,
  of,
  takeWhile,
  tap,
  timer,
} from 'rxjs';
import { filesIn, sizesIn, untilLeft$ } from '../disk/files-on-disk.js';
import type { Sandbox, SandboxResult } from '../file-system.js';

/** Options of sandboxes that run programs. */
export interface ProgramOptions {
  /** The directory with the files, the only thing that code may change. It must exist. */
  readonly directory: string;
  /** The maximum duration, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  /** The maximum memory in MiB. Default: 512. */
  readonly memoryMb?: number | undefined;
  /** The maximum number of processes. Default: 64. */
  readonly maxProcesses?: number | undefined;
  /** The maximum number of characters of output; the middle of longer output is dropped. Default: 10,000. */
  readonly maxLength?: number | undefined;
  /** The maximum size of a file for the tools, in bytes; code may write larger ones. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
  /** The maximum size of all files for the tools, as that of `filesOnDisk`. Default: 1,000,000,000. */
  readonly maxTotalBytes?: number | undefined;
  /** Whether code may use the network. Default: false. */
  readonly network?: boolean | undefined;
}

export const programRules: Readonly<Record<keyof ProgramOptions, Rule>> = {
  directory: isText,
  timeoutMs: isDelay,
  memoryMb: wholeNumber(32),
  maxProcesses: wholeNumber(1),
  maxLength: wholeNumber(100),
  maxBytes: wholeNumber(1),
  maxTotalBytes: wholeNumber(1),
  network: isFlag,
};

/** A program that runs code. */
export interface Launch {
  readonly args: readonly string[];
  /** Called when the caller has left, or the time is over, before the program has ended. */
  readonly kill?: () => void;
}

/** A user, and the group. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** How a sandbox starts its program. */
export interface Launcher extends Pick<Sandbox, 'language'> {
  readonly program: string;
  /** The user that runs the code, if that is another one. */
  readonly owner?: Owner | undefined;
  /** The names of environment variables that the program gets, which is not the code. */
  readonly environment: readonly string[];
  /** `code` is the path of a file with the code, and `directory` the real path of that with the files. */
  readonly launch: (code: string, directory: string) => Launch;
  /** Throws a `config` error if the program cannot use a directory, by its real path. Default: it can. */
  readonly checkDirectory?: (directory: string) => void;
  /** Throws an error if the sandbox itself did not work. */
  readonly check: (text: string, exitCode: number | undefined) => void;
}

/** Creates a sandbox that runs a program for each piece of code. */
export const programSandbox = (
  { directory, timeoutMs = 30_000, maxLength = 10_000, maxBytes, maxTotalBytes }: ProgramOptions,
  { language, program, owner, environment, launch, check, checkDirectory }: Launcher,
): Sandbox => {
  const files = confinedFiles(directory, { maxBytes });
  checkDirectory?.(files.root);
  const command = runCommand({
    commands: [program],
    approve: true,
    directory: files.root,
    environment,
    maxLength,
    // Its own limit would be an error, and come after this one.
    timeoutMs: timeoutMs + 60_000,
  });
  const sizes = sizesIn(files);
  const list$ = untilLeft$((signal) => files.list(signal));
  return {
    ...filesIn(files, { maxBytes, maxTotalBytes }, sizes),
    language,
    run$: (code, context) =>
      list$.pipe(
        concatMap((before) =>
          withFile$(code, owner, (file) => {
            const { args, kill } = launch(file, files.root);
            const ran$ = command.run$({ command: program, args }, context).pipe(
              map((emission) => (emission.type === 'output' ? emission.output : emission.value)),
              filter((emission) => typeof emission === 'string' || isOutput(emission)),
            );
            const late$ = timer(timeoutMs, context.scheduler).pipe(map(() => late(timeoutMs)));
            return killedUnlessEnded(merge(ran$, late$), kill);
          }).pipe(
            concatMap((emission) =>
              typeof emission === 'string'
                ? of(emission)
                : list$.pipe(map((after) => resultOf(emission, changedIn(before, after), check))),
            ),
          ),
        ),
        finalize(() => sizes.forget()),
      ),
  };
};

type Ended = Pick<ToolOutput, 'content' | 'details'>;

const isOutput = (value: unknown): value is ToolOutput =>
  isRecord(value) && Array.isArray(value['content']);

const late = (timeoutMs: number): Ended => ({
  content: [{ type: 'text', text: `The code was stopped after ${timeoutMs} ms.` }],
});

/** Puts code into a file of its own while it runs. */
const withFile$ = <T>(
  code: string,
  owner: Owner | undefined,
  run: (file: string) => Observable<T>,
): Observable<T> =>
  defer(() => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-code-'));
    const file = join(folder, 'code');
    writeFileSync(file, code, { mode: 0o444 });
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
    return run(file).pipe(finalize(() => rmSync(folder, { recursive: true, force: true })));
  });

/** Passes on what a program emits, until it has ended or is too late. */
const killedUnlessEnded = (
  emissions$: Observable<string | Ended>,
  kill: (() => void) | undefined,
): Observable<string | Ended> =>
  defer(() => {
    let hasEnded = false;
    return emissions$.pipe(
      tap((emission) => {
        hasEnded = typeof emission !== 'string' && emission.details !== undefined;
      }),
      takeWhile((emission) => typeof emission === 'string', true),
      finalize(() => {
        if (!hasEnded) kill?.();
      }),
    );
  });

const resultOf = (
  { content, details }: Ended,
  files: readonly string[],
  check: Launcher['check'],
): SandboxResult => {
  const text = textOf({ content });
  const code = isRecord(details) ? details['code'] : undefined;
  const exitCode = typeof code === 'number' ? code : undefined;
  check(text, exitCode);
  return { text, files, ...(exitCode !== undefined && { exitCode }) };
};

const changedIn = (
  before: readonly ConfinedEntry[],
  after: readonly ConfinedEntry[],
): readonly string[] => {
  const stamps = new Map(before.map(({ path, stamp }) => [path, stamp]));
  return after
    .filter(({ path, stamp }) => stamps.get(path) !== stamp)
    .map(({ path }) => path)
    .sort();
};
