import { parseArgs } from 'node:util';
import { npm } from './run.mjs';

const each = ['--workspaces', '--if-present'];
const slow = ['processes', 'stores'].flatMap((tier) => ['--tier', tier]);
const steps = [
  { name: 'build', goal: 'the packages compile', args: ['run', 'build'], loud: true },
  { name: 'types', goal: 'TypeScript 7 agrees', args: ['run', 'build:ts7'] },
  { name: 'lint', goal: 'eslint finds no fault', args: ['run', 'lint'] },
  { name: 'format', goal: 'prettier would change nothing', args: ['run', 'format'] },
  { name: 'boundaries', goal: 'nothing imports what it must not', args: ['run', 'boundaries'] },
  {
    name: 'diagrams',
    goal: 'the pictures are those of the tests',
    args: ['run', 'diagrams:check'],
  },
  { name: 'tests', goal: 'the quick tests pass', args: ['test'], loud: true },
  {
    name: 'slow',
    goal: 'the tests of processes and stores pass',
    args: ['test', '--', ...slow],
    loud: true,
  },
  { name: 'api', goal: 'the API reports are up to date', args: ['run', 'api:check', ...each] },
  { name: 'size', goal: 'no package has grown beyond its limit', args: ['run', 'size'] },
  {
    name: 'house',
    goal: 'no measure of size or shape exceeds its ceiling',
    args: ['run', 'house', '--', '--check'],
  },
  { name: 'contents', goal: 'npm can publish the packages', args: ['run', 'pack:check', ...each] },
];
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
  const rows = [];
  let code = 0;
  for (const step of chosen) {
    const result = await perform(step);
    rows.push(row(step.name, result.summary));
    code = result.code;
    if (code !== 0) break;
  }
  console.log(`\n${rows.join('\n')}`);
  return code;
}

async function perform({ name, args, loud = false }) {
  process.stdout.write(loud ? `${name} …\n` : `${name} … `);
  const start = performance.now();
  const { code, output } = await npm([loud ? '--silent' : '--loglevel=error', ...args], {
    quiet: !loud,
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const summary = `${code === 0 ? 'passed' : 'failed'} ${seconds.padStart(6)} s`;
  console.log(loud ? `${name} … ${summary}` : summary);
  if (code !== 0 && !loud) console.log(output.trimEnd());
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
