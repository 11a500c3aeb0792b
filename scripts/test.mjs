import { parseArgs } from 'node:util';
import { node } from './run.mjs';
import { setUp } from './set-up.mjs';
import { tiers } from './test/tiers.mjs';

const names = tiers.map(({ name }) => name);
/** What `npm test` runs. */
const quick = ['quick', 'passing'];
/** Of the runs of each property; `npm run test:all` has them all. */
const ciShare = 0.05;

const help = `npm test -- [pattern …] [--tier <tier>] [--all] [any option of Jest]

npm test                     runs the tiers "quick" and "passing"
npm test -- loop             runs the tests whose path contains "loop", of every tier
npm test -- --tier stores    runs this tier; the option may be repeated
npm run test:all             runs every tier (--all), with the full number of runs of each property

${tiers.map(({ name, goal, minutes }) => `  ${name.padEnd(11)}${goal} (about ${minutes} min)`).join('\n')}

MILLRACE_RUNS is the share of the runs, from 0 to 1: ${ciShare} unless it is set, and 1 with --all.`;

function readOptions(args) {
  const options = {
    tier: { type: 'string', multiple: true },
    all: { type: 'boolean' },
    help: { type: 'boolean' },
  };
  const { tokens, values } = parseArgs({ args, options, strict: false, tokens: true });
  const own = tokens.filter(({ kind, name }) => kind === 'option' && Object.hasOwn(options, name));
  const taken = new Set(
    own.flatMap(({ index, inlineValue, value }) => [
      index,
      ...(value !== undefined && !inlineValue ? [index + 1] : []),
    ]),
  );
  const chosen = values.all ? names : values.tier;
  const unknown = chosen?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`There is no tier "${unknown}".`);
  return { ...values, chosen, jestArgs: args.filter((_, index) => !taken.has(index)) };
}

/** Runs Jest with the tests of these tiers, or with all. */
async function jest(args, chosen) {
  if (chosen !== undefined) process.env.MILLRACE_TIERS = chosen.map(({ name }) => name).join();
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const { code } = await node([...flags, 'node_modules/jest/bin/jest.js', ...args]);
  return code;
}

async function test(args) {
  const { help: wantsHelp, all, chosen, jestArgs } = readOptions(args);
  if (wantsHelp) return console.log(help) ?? 0;
  process.env.MILLRACE_RUNS ??= String(all ? 1 : ciShare);
  await setUp();
  const isPattern = jestArgs.some((arg) => !arg.startsWith('-'));
  if (isPattern && chosen === undefined) return jest(jestArgs);
  const ran = tiers.filter(({ name }) => (chosen ?? quick).includes(name));
  const together = ran.filter(({ inBand }) => !inBand);
  const alone = ran.filter(({ inBand }) => inBand);
  let code = 0;
  if (together.length > 0) code = await jest(jestArgs, together);
  if (alone.length > 0) code = Math.max(code, await jest(['--runInBand', ...jestArgs], alone));
  return code;
}

try {
  process.exitCode = await test(process.argv.slice(2));
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
