#!/usr/bin/env node
import { getDefaultHighWaterMark, setDefaultHighWaterMark } from 'node:stream';
import { config, fromEvent, merge } from 'rxjs';
import { main } from './main.js';
import { plainTheme } from './presentation/theme.js';

config.onUnhandledError = (error) => {
  // Only who asks for more than the version needs what it comes with.
  import('./presentation/describe-error.js').then(
    ({ describeError }) => process.stderr.write(`${describeError(error, plainTheme)}\n`),
    () => process.stderr.write(`${String(error)}\n`),
  );
};

// The fetch of Node 20 takes more from a socket at once than its streams hold, and so reads on ahead of a slow reader.
const enough = 65_536;
if (getDefaultHighWaterMark(false) < enough) setDefaultHighWaterMark(false, enough);

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

// A tool that goes on after it was told to stop must not keep the program.
process.exit(code);
