import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { npm } from './run.mjs';
import { kinds, layers } from './test/kinds.mjs';

const each = ['--workspaces', '--if-present'];
const kindsToRun = kinds.filter(({ name }) => name !== 'quick');
const steps = [
  { name: 'build', goal: 'the packages compile', args: ['run', 'build'], alone: true },
  { name: 'format', goal: 'prettier would change nothing', args: ['run', 'format'] },
  { name: 'boundaries', goal: 'nothing imports what it must not', args: ['run', 'boundaries'] },
  { name: 'types', goal: 'TypeScript 6 takes the declarations', args: ['run', 'types'] },
  { name: 'lint', goal: 'eslint finds no fault', args: ['run', 'lint'] },
  {
    name: 'rules',
    goal: 'every rule of docs/rules.md links to its tests',
    args: ['run', 'rules', '--', '--check'],
  },
  { name: 'api', goal: 'the API reports are up to date', args: ['run', 'api:check', ...each] },
  {
    name: 'house',
    goal: 'no measure of size or shape exceeds its ceiling',
    args: ['run', 'house', '--', '--check'],
  },
  { name: 'size', goal: 'no package has grown beyond its limit', args: ['run', 'size'] },
  { name: 'contents', goal: 'npm can publish the packages', args: ['run', 'contents'] },
  { name: 'release', goal: 'a release would be complete', args: ['run', 'release'] },
  {
    name: 'diagrams',
    goal: 'the pictures are those of the tests',
    args: ['run', 'diagrams:check'],
  },
  { name: 'tests', goal: 'the quick tests pass', args: ['test'], alone: true },
  ...layers.map((layer) => ({
    name: layer,
    goal: `suites of core pass with the layer "${layer}" on every agent`,
    args: ['test', '--', '--layer', layer],
    alone: true,
  })),
  ...kindsToRun.map(({ name, goal }) => ({
    name,
    goal,
    args: ['test', '--', '--kind', name],
    alone: true,
  })),
  {
    name: 'mcp-servers',
    goal: 'public MCP servers of npm are listed and called (code 75: not downloaded)',
    args: ['run', 'mcp-servers'],
    alone: true,
  },
];
/** How many steps run at a time. Those that are `alone` use every core themselves. */
const lanes = Math.min(4, availableParallelism());
const names = steps.map(({ name }) => name);
const row = (name, text) => `  ${name.padEnd(12)}${text}`;

const help = `npm run check -- [--from <step>] [--only <step>] [--skip <step>]

${steps.map(({ name, goal }) => row(name, goal)).join('\n')}

--only and --skip may be repeated. The build always runs: the other steps read what it writes.`;

function chosenSteps({ from = 'build', only = names, skip = [] }) {
  const unknown = [from, ...only, ...skip].filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`There is no step called ${unknown.join(', ')}.`);
  return steps.filter(
    ({ name }, index) =>
      name === 'build' ||
      (index >= names.indexOf(from) && only.includes(name) && !skip.includes(name)),
  );
}

async function check(chosen) {
  const rows = new Map();
  let code = 0;
  const next = (group) => (code === 0 ? group.shift() : undefined);
  const work = async (group) => {
    for (let step = next(group); step !== undefined; step = next(group)) {
      const result = await perform(step);
      rows.set(step, row(step.name, result.summary));
      code ||= result.code;
    }
  };
  for (const group of grouped(chosen)) {
    await Promise.all(Array.from({ length: lanes }, () => work(group)));
  }
  console.log(`\n${chosen.flatMap((step) => rows.get(step) ?? []).join('\n')}`);
  return code;
}

/** Each step that runs alone is a group of its own. */
function grouped(chosen) {
  const groups = [];
  for (const step of chosen) {
    const last = groups.at(-1);
    if (step.alone || last === undefined || last[0].alone) groups.push([step]);
    else last.push(step);
  }
  return groups;
}

async function perform({ name, args, alone = false }) {
  if (alone) console.log(`${name} …`);
  const start = performance.now();
  const { code, output } = await npm([alone ? '--silent' : '--loglevel=error', ...args], {
    quiet: !alone,
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const summary = `${code === 0 ? 'passed' : 'failed'} ${seconds.padStart(6)} s`;
  console.log(`${name} … ${summary}`);
  if (code !== 0 && !alone) console.log(output.trimEnd());
  return { code, summary };
}

try {
  const several = { type: 'string', multiple: true };
  const options = {
    from: { type: 'string' },
    only: several,
    skip: several,
    help: { type: 'boolean' },
  };
  const { values } = parseArgs({ options });
  const chosen = chosenSteps(values);
  if (values.help) console.log(help);
  else process.exitCode = await check(chosen);
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
