#!/usr/bin/env node
import { columnsIn } from './command-line/help-layout.js';
import { type Parsed, parseArguments, type Unsure } from './command-line/parse-arguments.js';

const parsed = parseArguments(process.argv.slice(2), {
  writeOut: (text) => process.stdout.write(text),
  writeErr: (text) => process.stderr.write(text),
  columns: columnsIn(process.stdout),
  errorColumns: columnsIn(process.stderr),
});

/** Loads RxJS and what answers, which takes most of the time to start, only if there is something to run. */
const run = async (it: Parsed | Unsure): Promise<number> => {
  const { performHere } = await import('./perform-here.js');
  return performHere(it);
};

// A tool that ignores its abort signal must not keep the process alive.
process.exit(parsed.status === 'done' ? parsed.code : await run(parsed));
