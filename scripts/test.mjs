import { parseArgs } from 'node:util';
import { node } from './run.mjs';
import { setUp } from './set-up.mjs';

const tiers = [
  {
    name: 'quick',
    goal: 'units, contracts and properties',
    minutes: 5,
    // Every test that is in no other tier.
    paths: [],
  },
  {
    name: 'processes',
    goal: 'docs, examples, the CLI, faults of providers, flow over HTTP',
    minutes: 1,
    paths: [
      'examples/',
      'packages/cli/src/(main|vendors)\\.test',
      'packages/cli/src/runs/',
      'packages/fault-server/',
      'packages/fault-suite/',
      'packages/flow-suite/',
      'packages/bench/',
    ],
  },
  {
    name: 'stores',
    goal: 'databases, and processes that are killed in the middle of calls',
    minutes: 1,
    paths: ['packages/store/', 'packages/crash-suite/'],
  },
  {
    name: 'measures',
    goal: 'growth, leaks and the bench, one after the other',
    minutes: 1,
    paths: ['/(growth|leaks|bench|import-time)\\.test'],
    args: ['--runInBand'],
  },
];
/** Core suites that run again with a layer on every agent: nothing may change. Those that look at a moment, such as a kill between two steps, run with one that passes on only. */
const core = 'packages/core/src';
const layered = [
  {
    name: 'passing',
    goal: 'core suites with a layer that passes everything on',
    minutes: 1,
    paths: [
      `${core}/(agent|demand|history|interceptor|interrupt|layer|loop|output|phase-list|prepared|properties|session|session-properties|sub-agent|uncertain|watch)\\.test`,
      `${core}/(compose|phases|sessions|tools|traffic)/`,
      `${core}/journal/[^/]+\\.test`,
    ],
    env: { MILLRACE_LAYERS: 'pass' },
  },
  {
    name: 'cuts',
    goal: 'the same, for calls that are cut anywhere',
    minutes: 1,
    paths: [`${core}/journal/cuts/`],
    env: { MILLRACE_LAYERS: 'pass' },
  },
  {
    name: 'later',
    goal: 'core suites with a layer that passes everything on later',
    minutes: 1,
    paths: [
      `${core}/(agent|history|interceptor|loop|phase-list|properties|session-properties|watch)\\.test`,
      `${core}/journal/(attach[^/]*|calls|draining|fork-[^/]*)\\.test`,
      `${core}/sessions/(forked-session|hostile-states|in-process-sessions|keep-sessions)\\.test`,
      `${core}/phases/(corrections|store-memory)\\.test`,
      `${core}/tools/`,
      `${core}/traffic/(?!budget|limit-calls)`,
    ],
    env: { MILLRACE_LAYERS: 'async' },
  },
];
const names = [...tiers, ...layered].map(({ name }) => name);
/** What `npm test` runs. */
const quick = ['quick', 'passing'];
/** Of the runs of each property; `npm run test:all` has them all. */
const ciShare = 0.2;

const help = `npm test -- [pattern …] [--tier <tier>] [--all] [any option of Jest]

npm test                     runs the tiers "quick" and "passing"
npm test -- loop             runs the tests whose path contains "loop", of every tier
npm test -- --tier stores    runs this tier; the option may be repeated
npm run test:all             runs every tier (--all), with the full number of runs of each property

${[...tiers, ...layered].map(({ name, goal, minutes }) => `  ${name.padEnd(11)}${goal} (about ${minutes} min)`).join('\n')}

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

async function jest(args, env = {}) {
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  Object.assign(process.env, env);
  const { code } = await node([...flags, 'node_modules/jest/bin/jest.js', ...args]);
  for (const name of Object.keys(env)) delete process.env[name];
  return code;
}

/** A test is in the last tier that has a pattern for it. */
function pathsOf(tier) {
  const later = layered.includes(tier)
    ? []
    : tiers.slice(tiers.indexOf(tier) + 1).flatMap(({ paths }) => paths);
  return [
    ...(tier.paths.length > 0 ? ['--testPathPatterns', ...tier.paths] : []),
    '--testPathIgnorePatterns',
    '/node_modules/',
    ...later,
  ];
}

async function test(args) {
  const { help: wantsHelp, all, chosen, jestArgs } = readOptions(args);
  if (wantsHelp) return console.log(help) ?? 0;
  process.env.MILLRACE_RUNS ??= String(all ? 1 : ciShare);
  await setUp();
  const isPattern = jestArgs.some((arg) => !arg.startsWith('-'));
  if (isPattern && chosen === undefined) return jest(jestArgs);
  let code = 0;
  for (const tier of [...tiers, ...layered].filter(({ name }) =>
    (chosen ?? quick).includes(name),
  )) {
    const args = [...jestArgs, ...(tier.args ?? []), ...pathsOf(tier)];
    code = Math.max(code, await jest(args, tier.env));
  }
  return code;
}

try {
  process.exitCode = await test(process.argv.slice(2));
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
