import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface TestProcess {
  readonly child: ChildProcess;
  /** Resolves when the process has printed this line. */
  said(line: string): Promise<void>;
  /** All printed lines, when the process has ended. */
  readonly ended: Promise<readonly string[]>;
}

/** Runs a script in a child process, with the packages of this one. */
export const startProcess = (
  script: string,
  parameters: readonly string[],
  onLine: (line: string, child: ChildProcess) => void = () => undefined,
): TestProcess => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, ...parameters], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    onLine(line, child);
  });
  const ended = new Promise<readonly string[]>((resolve, reject) => {
    child.once('error', reject);
    // Its output may end before it does.
    const over = [once(reader, 'close'), once(child, 'exit')];
    Promise.all(over).then(() => resolve(lines), reject);
  });
  const said = (wanted: string): Promise<void> =>
    new Promise((resolve, reject) => {
      if (lines.includes(wanted)) resolve();
      reader.on('line', (line) => {
        if (line === wanted) resolve();
      });
      reader.once('close', () => reject(new Error(`It has ended before it said '${wanted}'.`)));
    });
  return { child, said, ended };
};

/**
 * A script that appends batches of three records and prints the number of each, then the error code when it fails.
 * `opening` is a script that opens a store with its driver as `calls`.
 */
export const writing = (opening: string): string => `
  import { concat, defer, ignoreElements, of, repeat, switchMap } from 'rxjs';
  ${opening}
  const batch = (at) => ['a', 'b', 'c'].map((part) => ({
    kind: 'step', name: at + part, seq: at, text: JSON.stringify('x'.repeat(10_000)),
  }));
  const say = (text) => process.stdout.write(text + '\\n');
  let at = 0;
  const write = (claim) => defer(() => {
    const number = at++;
    return concat(claim.append$(batch(number)).pipe(ignoreElements()), of(number));
  });
  calls.claim$('c').pipe(switchMap((claim) => write(claim).pipe(repeat()))).subscribe({
    next: (at) => say(at),
    error: (error) => say(error.code),
  });
`;

/** Kills a process after it has printed a batch number. Resolves to the last number it printed. */
export const killedAfter = async (
  opening: string,
  parameters: readonly string[],
  batches: number,
): Promise<number> => {
  const said = await startProcess(writing(opening), parameters, (line, child) => {
    if (Number(line) === batches) child.kill('SIGKILL');
  }).ended;
  return Number(said.at(-1) ?? -1);
};

/** The names of the first `count` records of such a process. */
export const namesOfBatches = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${Math.floor(at / 3)}${'abc'[at % 3] ?? ''}`);
