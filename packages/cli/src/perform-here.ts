import { config, fromEvent, merge } from 'rxjs';
import type { Parsed, Unsure } from './command-line/parse-arguments.js';
import { perform } from './main.js';
import { describeError } from './presentation/describe-error.js';
import { plainTheme } from './presentation/theme.js';

/** Runs a command with the streams, variables and signals of this process. Resolves to its exit code. */
export const performHere = (parsed: Parsed | Unsure): Promise<number> => {
  config.onUnhandledError = (error) => {
    process.stderr.write(`${describeError(error, plainTheme)}\n`);
  };
  const environment = {
    argv: process.argv.slice(2),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    platform: process.platform,
    directory: process.cwd(),
    interrupt$: fromEvent(process, 'SIGINT'),
    terminate$: merge(fromEvent(process, 'SIGTERM'), fromEvent(process, 'SIGHUP')),
  };
  return perform(environment, parsed);
};
