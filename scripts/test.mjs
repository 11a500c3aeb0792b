import { parseArgs } from 'node:util';
import { setUp } from './set-up.mjs';
import { jest } from './test/jest.mjs';
import { kinds, layers } from './test/kinds.mjs';

const help = `npm test -- [pattern …] [--kind <kind>] [--layer <layer>] [--all] [any option of Jest]

npm test                     runs the quick tests
npm test -- loop             runs the tests whose path contains "loop", of every kind
npm test -- --kind store     runs this kind; the option may be repeated
npm test -- --layer pass     runs suites of core again, with this layer on every agent: ${layers.join(' or ')}
npm run test:all             runs every kind and layer (--all), with the full number of runs of each property

The suffix of a file is its kind: loop.test.ts is quick, kill.process.test.ts belongs to "process".

${kinds.map(({ name, goal }) => `  ${name.padEnd(9)}${goal}`).join('\n')}

MILLRACE_RUNS is the share of the runs, above 0 and up to 1: 0.05 unless it is set, and 1 with --all.
npm run fuzz runs the properties with random seeds.`;

const options = {
  kind: { type: 'string', multiple: true },
  layer: { type: 'string', multiple: true },
  all: { type: 'boolean' },
  help: { type: 'boolean' },
};

/** Separates our options from those of Jest. */
function readOptions(args) {
  const { tokens, values } = parseArgs({ args, options, strict: false, tokens: true });
  const own = tokens.filter(({ kind, name }) => kind === 'option' && Object.hasOwn(options, name));
  const taken = new Set(
    own.flatMap(({ index, inlineValue, value }) => [
      index,
      ...(value !== undefined && !inlineValue ? [index + 1] : []),
    ]),
  );
  return { ...values, jestArgs: args.filter((_, index) => !taken.has(index)) };
}

/** What to run, one after the other. */
function chosenRuns({ kind, layer = [], all, jestArgs }) {
  const names = kinds.map(({ name }) => name);
  requireKnown('kind', kind ?? [], names);
  requireKnown('layer', layer, layers);
  if (all) return [...kinds.map((kind) => ({ kind })), ...layers.map((layer) => ({ layer }))];
  if (kind === undefined && layer.length === 0 && jestArgs.some((arg) => !arg.startsWith('-'))) {
    return [{}];
  }
  const wanted = kind ?? (layer.length > 0 ? [] : ['quick']);
  return [
    ...kinds.filter(({ name }) => wanted.includes(name)).map((kind) => ({ kind })),
    ...layer.map((layer) => ({ layer })),
  ];
}

function requireKnown(option, given, known) {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Error(`There is no ${option} "${unknown}". It is one of ${known.join(', ')}.`);
}

async function test(args) {
  const chosen = readOptions(args);
  if (chosen.help) return console.log(help) ?? 0;
  const runs = chosenRuns(chosen);
  if (chosen.all) process.env.MILLRACE_RUNS ??= '1';
  await setUp();
  let failed = 0;
  for (const run of runs) {
    const { code } = await jest(chosen.jestArgs, run);
    failed ||= code;
  }
  return failed;
}

try {
  process.exitCode = await test(process.argv.slice(2));
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
