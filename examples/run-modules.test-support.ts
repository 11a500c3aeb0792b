import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What a module printed. */
export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

const execute = promisify(execFile);
const root = join(import.meta.dirname, '..');
const runner = join(root, 'scripts', 'test', 'run-modules.mjs');

/** Runs all of these modules in one process, one after the other. */
export const runModules = async (
  files: readonly string[],
): Promise<(file: string) => Printed | undefined> => {
  const options = { cwd: root, maxBuffer: 100_000_000 };
  const { stdout, stderr } = await execute(process.execPath, [runner, ...files], options).catch(
    (error: unknown) => error as Printed,
  );
  const printed = new Map<string, Printed>();
  for (const line of stdout.split('\n').filter((it) => it !== '')) {
    const { file, ...rest } = JSON.parse(line) as Printed & { readonly file: string };
    printed.set(file, rest);
  }
  if (printed.size === 0) throw new Error(`The modules did not run: ${stderr}`);
  return (file) => printed.get(file);
};

/** Runs a module in a process of its own, as a user does. */
export const runAlone = (file: string): Promise<Printed> =>
  execute(process.execPath, [file], { cwd: root, timeout: 100_000 });
