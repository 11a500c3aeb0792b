import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { machine } from '../runner/machine.js';
import { thisNode } from '../runner/node-program.js';
import { UsageError } from '../runner/usage-error.js';
import { formatTable } from '../table.js';
import { cost } from './cost.js';
import { concurrent } from './concurrent.js';
import { hostile } from './hostile.js';
import { idle } from './idle.js';
import { memory } from './memory.js';
import { proxy } from './proxy.js';
import type { ServeRow } from './row.js';
import { slow } from './slow.js';
import { together } from './together.js';

const rows: readonly ServeRow[] = [
  { name: 'cost', about: 'an event and the first event, beside a handler by hand', run: cost },
  {
    name: 'concurrent',
    about: 'many conversations at once, at the speed of a model',
    run: concurrent,
  },
  {
    name: 'together',
    about: 'the first byte of calls that begin at the same moment',
    run: together,
  },
  {
    name: 'memory',
    about: 'what silent calls and streams hold, beside node:http by hand',
    run: memory,
  },
  { name: 'slow', about: 'clients that hardly read, beside one that does', run: slow },
  { name: 'proxy', about: '70 s of silence behind an nginx with defaults', run: proxy },
  { name: 'hostile', about: 'requests that no honest client sends', run: hostile },
  {
    name: 'idle',
    about: 'connections and streams that are only open, and slow requests',
    run: idle,
  },
];

const help = `npm run bench -- serve [options]

Measures the chat server of @millrace/server on loopback. Server and clients are processes of their own.

  --only a,b     these rows; default: all
  --rounds n     how often each is measured; default: 5
  --small        a quick look: little is done, and the numbers say nothing
  --json FILE    writes everything that was measured to a file
  --help

Rows:
${rows.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`).join('\n')}`;

/** Measures what is asked for: tables on stdout, progress on stderr. */
export const runServe = async (args: readonly string[]): Promise<void> => {
  const values = parsed(args);
  if (values.help === true) {
    console.log(help);
    return;
  }
  const isSmall = values.small ?? false;
  const names = values.only?.split(',') ?? rows.map(({ name }) => name);
  const unknown = names.find((name) => rows.every((row) => row.name !== name));
  if (unknown !== undefined) throw new UsageError(`There is no row '${unknown}'.`);
  const rounds = Number(values.rounds ?? (isSmall ? 1 : 5));
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new UsageError('--rounds is a whole number from 1.');
  const { date, cpu, cores, memoryGb } = machine();
  console.log(
    `${date}, ${cpu}, ${cores} cores, ${memoryGb} GB, Node ${thisNode.version}, rounds: ${rounds}`,
  );
  const onProgress = (what: string): void => console.error(`  ${what}`);
  const results = [];
  for (const { name, run } of rows.filter((row) => names.includes(row.name))) {
    const loadBefore = loadavg()[0];
    const { tables, raw } = await run({ rounds, isSmall, onProgress });
    for (const table of tables) console.log(`\n${formatTable(table)}`);
    console.log(
      `\nLoad of the machine: ${shownLoad(loadBefore)} before, ${shownLoad(loadavg()[0])} after.`,
    );
    results.push({ row: name, tables, raw });
  }
  if (values.json !== undefined) {
    const all = { machine: machine(), node: thisNode.version, rounds, isSmall, results };
    writeFileSync(values.json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
};

const shownLoad = (load = NaN): string => load.toFixed(1);

const parsed = (args: readonly string[]) => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        only: { type: 'string' },
        rounds: { type: 'string' },
        small: { type: 'boolean' },
        json: { type: 'string' },
      },
    });
    return values;
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
};
