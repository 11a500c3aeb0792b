import { parseArgs } from 'node:util';
import { openBench } from './bench.js';
import { type Crashed, type CrashOptions, crashStore } from './driver/crash-store.js';
import { mainFleet } from './fleet/main-fleet.js';
import { type StoreName, storeNames } from './places/place.js';
import { progressOf } from './progress.js';
import { reportOf, wrongsOf } from './report.js';

const help = `npm run crash -- [--kills 200] [--seed 1] [--store files|sqlite|postgres|all]
npm run crash -- --fleet [--seconds 120] [--calls 500] [--processes 3] [--seed 1]

Lets agents with tools call a server that counts effects, kills their processes (SIGKILL) all over the way, resumes the calls
in others, and holds what is left against a run that nobody has disturbed. It prints what was counted for each store, and where the kills have hit. Then two
processes resume the same calls at the same time: one of them must be refused.

Ctrl-C ends it, and prints what there is by then. It exits with 1 when an effect was lost, was done twice and nobody says so, or anything else is not as it must be. The seed
says what the calls do, and at which points processes are killed. For postgres it starts a server of its own,
or takes the one that MILLRACE_TEST_POSTGRES names.

With --fleet, worker processes of the engine of @millrace/dbos run the calls of many sessions, while they are killed, stopped (SIGSTOP) and drained at
random for so many seconds, and others take their places. It prints what was counted in all.`;

/** Trials at the same time. */
const atOnce = 6;

try {
  process.exitCode = await run();
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
  process.exitCode = 2;
}

async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      store: { type: 'string', default: 'all' },
      fleet: { type: 'boolean' },
      seconds: { type: 'string', default: '120' },
      calls: { type: 'string', default: '500' },
      processes: { type: 'string', default: '3' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    console.log(help);
    return 0;
  }
  const [kills, seed] = [wholeNumber('kills', values.kills), wholeNumber('seed', values.seed)];
  if (values.fleet === true) {
    return mainFleet({
      seed,
      calls: wholeNumber('calls', values.calls),
      processes: Math.max(1, wholeNumber('processes', values.processes)),
      disturbMs: 1_000 * wholeNumber('seconds', values.seconds),
    });
  }
  const all = new Map<StoreName, Crashed>();
  const report = (): number => {
    const crashed = [...all.values()];
    console.log(`\n${reportOf(crashed)}\n`);
    const wrongs = wrongsOf(crashed);
    wrongs.forEach((wrong) => console.log(`WRONG: ${wrong}.`));
    if (wrongs.length > 0) console.log(`To do that again: npm run crash -- --seed ${seed}`);
    return wrongs.length;
  };
  // What is under way is left: its processes hear of it, too.
  process.once('SIGINT', () => {
    report();
    console.log('It was cut: that is a part of what was asked for.');
    process.exit(130);
  });
  for (const store of storesIn(values.store)) {
    await crash({ store, kills, seed }, (soFar) => all.set(store, soFar));
  }
  if (report() > 0) return 1;
  console.log('All is as it must be.');
  return 0;
}

async function crash(
  options: Pick<CrashOptions, 'store' | 'kills' | 'seed'>,
  note: (soFar: Crashed) => void,
): Promise<void> {
  const { store, kills, seed } = options;
  const bench = await openBench(store, seed);
  // Whatever ends this process, nothing of it stays.
  process.once('exit', bench.abandon);
  const progress = progressOf(store, kills);
  const onProgress = (soFar: Crashed): void => {
    note(soFar);
    progress(soFar);
  };
  try {
    const extent = { contests: 10, atOnce, onProgress };
    const crashed = await crashStore({ ...options, ...extent }, bench);
    note(crashed);
    console.error(`${store}: all in ${(crashed.ms / 1_000).toFixed(1)} s`);
  } finally {
    process.off('exit', bench.abandon);
    await bench.close();
  }
}

function storesIn(name: string): readonly StoreName[] {
  const known = storeNames.filter((store) => name === 'all' || name === store);
  if (known.length > 0) return known;
  throw new Error(`There is no store '${name}'. There are: ${storeNames.join(', ')}, all.`);
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/u.test(text)) return Number(text);
  throw new Error(`--${name} must be a whole number, and not '${text}'.`);
}
