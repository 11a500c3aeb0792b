import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { UsageError } from '../runner/usage-error.js';
import { drawChart } from './draw-chart.js';
import { readRun } from './read-run.js';

/** What `--help` prints. */
export const help = `npm run bench:chart -- FILE [options]

Draws the scenarios a, b, c, m, n and o of a run, whose numbers \`npm run bench -- --json FILE\` has written, as an SVG.

  --out FILE          where it is written; default: the name of the JSON with .svg
  --node 24           which Node, if the run had several
  --help`;

/** Writes a chart as the command line asks, or throws a `UsageError`. Returns what to print. */
export const writeChart = (args: readonly string[]): string => {
  const { values, positionals } = parsed(args);
  if (values.help) return help;
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new UsageError('Name one file of JSON.');
  const out = values.out ?? file.replace(/(\.json)?$/, '.svg');
  if (out === file) throw new UsageError('The chart would replace its numbers.');
  writeFileSync(out, drawChart(readRun(jsonIn(file), values.node)));
  return `Wrote ${out}.`;
};

const parsed = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        out: { type: 'string' },
        node: { type: 'string' },
      },
    });
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
};

const jsonIn = (file: string): unknown => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new UsageError(`${file} is no file of JSON.`);
  }
};
