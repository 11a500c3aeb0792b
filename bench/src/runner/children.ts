import { type ChildProcess, fork } from 'node:child_process';

/** How a process is started. */
export interface ChildOptions {
  /** The program that runs it. Default: the one that runs this. */
  readonly execPath?: string;
  /** A file of certificates that it trusts beside those of Node. */
  readonly trusted?: string | undefined;
}

const running = new Set<ChildProcess>();

/**
 * Starts a module in a process of its own, which never outlives this one. What it prints is not shown; what it writes to stderr
 * can be read.
 */
export const startChild = (
  module: string,
  args: readonly string[],
  { execPath = process.execPath, trusted }: ChildOptions = {},
): ChildProcess => {
  const child = fork(module, args, {
    execPath,
    execArgv: [],
    env: { ...environment(), NODE_EXTRA_CA_CERTS: trusted },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
};

/** Kills all processes that have been started here. */
export const killChildren = (): void => {
  for (const child of running) child.kill('SIGKILL');
};

/** Little of this process: no key, no proxy and no switch of a framework gets in. */
const environment = (): NodeJS.ProcessEnv => {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, NODE_ENV: 'production', DO_NOT_TRACK: '1' };
};
