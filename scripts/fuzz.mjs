// Runs the properties of the tests with random seeds, for a chosen time.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setUp } from './set-up.mjs';
import { failuresOf } from './test/failures.mjs';
import { jest } from './test/jest.mjs';
import { readJson, root } from './workspaces.mjs';

const help = `npm run fuzz -- [pattern …] [--minutes <minutes>]

npm run fuzz                                    runs every property with random seeds, for 10 minutes
npm run fuzz -- millrace/src/journal --minutes 2    runs those of the files whose path contains this
npm run fuzz -- <file> --repeat <seed>/<path>   runs the properties of this file with what a failure has printed
                                                (-t <title> selects one test)

Prints a line for each failure, with the command that repeats it, and ends with 1 if there is one. Add the counterexample to
the \`examples\` of its property when you mend it.`;

const options = {
  minutes: { type: 'string', default: '10' },
  repeat: { type: 'string' },
  test: { type: 'string', short: 't' },
  help: { type: 'boolean' },
};

const folders = ['packages', 'conformance', 'bench', 'examples'];
/** They need a browser or a quiet machine. */
const leftOut = /\.(browser|measure)\.test\.ts$/;
/** How many files one run of Jest takes: between two runs there is a look at the time. */
const batch = 12;
const leastSeconds = 1;
/** Below the time-out of a test, which may contain several properties. */
const mostSeconds = 30;

const filesIn = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.test.ts') && !/(^|\/)(node_modules|dist|temp)\//.test(path));

/** The test files with properties, and how many each has. */
function propertyFiles(patterns) {
  return folders
    .flatMap(filesIn)
    .filter(
      (path) =>
        !leftOut.test(path) && (patterns.length === 0 || patterns.some((it) => path.includes(it))),
    )
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      return { path, count: text.includes('fast-check') ? text.split('fc.assert(').length - 1 : 0 };
    })
    .filter(({ count }) => count > 0);
}

const shuffled = (list) =>
  list
    .map((item) => [Math.random(), item])
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);

/** Runs Jest on these files, and resolves to its failures. */
async function play(files) {
  const report = join(root, 'temp', `fuzz-${process.pid}.json`);
  const args = ['--json', `--outputFile=${report}`, '--silent', '--passWithNoTests'];
  const { output } = await jest([...args, '--runTestsByPath', ...files], {}, { quiet: true });
  try {
    return failuresOf(readJson(report));
  } catch {
    return [`Jest ended without a report:\n${output}`];
  } finally {
    rmSync(report, { force: true });
  }
}

async function fuzz(patterns, minutes) {
  const files = propertyFiles(patterns);
  const count = files.reduce((sum, file) => sum + file.count, 0);
  if (count === 0)
    throw new Error(`No test file with a property contains ${patterns.join(' or ')}.`);
  const start = performance.now();
  const left = () => minutes * 60 - (performance.now() - start) / 1000;
  const share = (minutes * 60 * availableParallelism()) / count;
  const seconds = Math.min(mostSeconds, Math.max(leastSeconds, share));
  process.env.MILLRACE_FUZZ_SECONDS = seconds.toFixed(1);
  console.log(
    `${count} properties in ${files.length} files, ${seconds.toFixed(1)} s each, for ${minutes} minutes.`,
  );
  const failures = new Set();
  let played = 0;
  for (let queue = []; left() > 0;) {
    if (queue.length === 0) queue = shuffled(files);
    const now = queue.splice(0, batch);
    for (const failure of await play(now.map(({ path }) => path))) {
      failures.add(failure);
      console.log(`FAIL ${failure}`);
    }
    played += now.length;
    console.log(`${played} files played, ${(Math.max(0, left()) / 60).toFixed(1)} minutes left.`);
  }
  console.log(
    `${failures.size} failures in ${((performance.now() - start) / 60_000).toFixed(1)} minutes.`,
  );
  return failures.size === 0 ? 0 : 1;
}

async function main(args) {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  if (values.help) return console.log(help) ?? 0;
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error('--minutes must be above 0.');
  await setUp();
  if (values.repeat === undefined) return fuzz(positionals, minutes);
  if (!/^-?\d+\/[\d:]+$/.test(values.repeat) || positionals.length === 0) {
    throw new Error('--repeat takes the seed and the path of a failure, and the file of its test.');
  }
  process.env.MILLRACE_REPEAT = values.repeat;
  const title = values.test === undefined ? [] : ['-t', values.test];
  const { code } = await jest([...positionals, ...title]);
  return code;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
