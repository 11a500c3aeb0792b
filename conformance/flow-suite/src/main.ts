import { abortSection } from './abort/abort-section.js';
import { leaksSection, type LeaksSectionOptions } from './leaks/leaks-section.js';
import { slowSection } from './slow/slow-section.js';
import { type Section, tableOf } from './table.js';

const help = `npm run flow -- [--small] [slow] [abort] [leaks]

Measures Millrace over real HTTP on loopback, and prints a table for each section, or for those that are named:

  slow    what waits, and where, for a consumer that is slower than the answer comes (about 90 s)
  abort   how fast a call that is stopped lets go of its socket, and settles (about 10 s)
  leaks   what 10,000 calls leave behind (about 40 s)

It exits with 1 when something is not as it must be. --small is for a quick look: fewer calls, shorter answers.`;

/** Of few calls the memory grows by what is still being warmed up. */
const fewCalls: LeaksSectionOptions = {
  scripted: { perBlock: 100, blocks: 8, mostKb: 500 },
  http: { perBlock: 20, blocks: 8, mostKb: 2_000 },
};
/** Two sorts of thirteen interrupt a session, which keeps that as its state, in 80 bytes: 12 kB of 1,000 calls. */
const manyCalls: LeaksSectionOptions = {
  scripted: { perBlock: 500, blocks: 20, mostKb: 20 },
  http: { perBlock: 100, blocks: 20, mostKb: 200 },
};

const onProgress = (what: string): void => console.error(`  ${what}`);

/** Does one section, in full or small. */
type Measure = (isSmall: boolean) => Promise<Section>;

const sections: Readonly<Record<string, Measure>> = {
  slow: (isSmall) =>
    slowSection({ deltas: isSmall ? 1_000 : 50_000, bytes: 200, waitMs: 1, onProgress }),
  abort: (isSmall) => abortSection({ rounds: isSmall ? 5 : 20, toolMs: 2_000, onProgress }),
  leaks: (isSmall) => leaksSection(isSmall ? fewCalls : manyCalls),
};

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith('-'));
const unknown = args.filter((arg) => !Object.hasOwn(sections, arg) && arg !== '--small');
if (args.includes('--help') || args.includes('-h')) {
  console.log(help);
} else if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(', ')}.\n\n${help}`);
  process.exitCode = 2;
} else {
  process.exitCode = await run(names, args.includes('--small'));
}

async function run(chosen: readonly string[], isSmall: boolean): Promise<number> {
  let code = 0;
  for (const [name, measure] of Object.entries(sections)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const startedAt = performance.now();
    console.error(`${name} …`);
    const section = await measure(isSmall);
    console.error(`${name} … ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    console.log(`\n${tableOf(section)}\n`);
    if (section.wrongs.length > 0) code = 1;
  }
  return code;
}
