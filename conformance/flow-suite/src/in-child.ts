import { fork } from 'node:child_process';

/** A module that does one job in a process of its own: it sends what came of it as its only message. */
export interface Job<T> {
  readonly module: URL;
  readonly args: readonly string[];
  /** Options for V8. */
  readonly flags?: readonly string[];
  /** Reads what the process says, or throws. */
  readonly read: (said: unknown) => T;
}

/** Does a job in a process of its own, and gives what came of it. Rejects when the process ends without it. */
export const inChild = async <T>({ module, args, flags = [], read }: Job<T>): Promise<T> => {
  const child = fork(module, args, { execArgv: [...flags] });
  const said: unknown[] = [];
  child.on('message', (message) => said.push(message));
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  if (code === 0 && said.length === 1) return read(said[0]);
  throw new Error(
    `A process that measures has ended before its time (exit code ${code ?? 'none'}).`,
  );
};
