#!/usr/bin/env node
import { config, fromEvent, merge } from 'rxjs';
import { main } from './main.js';
import { plainTheme } from './presentation/theme.js';

config.onUnhandledError = (error) => {
  // Loaded lazily: `--version` does not need it.
  import('./presentation/describe-error.js').then(
    ({ describeError }) => process.stderr.write(`${describeError(error, plainTheme)}\n`),
    () => process.stderr.write(`${String(error)}\n`),
  );
};

const code = await main({
  argv: process.argv.slice(2),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  platform: process.platform,
  directory: process.cwd(),
  interrupt$: fromEvent(process, 'SIGINT'),
  terminate$: merge(fromEvent(process, 'SIGTERM'), fromEvent(process, 'SIGHUP')),
});

// A tool that ignores its abort signal must not keep the process alive.
process.exit(code);
