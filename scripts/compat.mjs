// Installs the packages as a program would, and checks on which platforms and compilers they work.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { published } from './manifests.mjs';
import { pack } from './pack.mjs';
import { npm, run } from './run.mjs';
import { setUp } from './set-up.mjs';
import { readJson, root } from './workspaces.mjs';

const suites = await Promise.all(
  readdirSync(new URL('compat/', import.meta.url))
    .filter((file) => file.endsWith('.mjs'))
    .sort()
    .map((file) => import(new URL(`compat/${file}`, import.meta.url))),
);
const names = suites.map(({ name }) => name);

const help = `npm run compat -- [--only <suite>] [--keep]

Packs every published package, installs the tarballs into an empty project (no links into this repository),
and prints a table of what works there:

${suites.map(({ name, goal }) => `  ${name.padEnd(10)}${goal}`).join('\n')}

  --only <suite>  runs this suite; may be repeated
  --keep          keeps the project, and prints where it is
  --help          prints this text

It needs the npm registry. The exit code is 1 if a row fails; a row that cannot run here is skipped.
A suite is a module of scripts/compat that exports \`name\`, \`goal\`, \`rows(context)\`, and optionally
\`dependencies\`: what the project needs for it, as in package.json.`;

/**
 * The project, with what a suite needs: its folder, the entries of all packages as programs import them, and functions
 * that write a file into it and run a program there.
 */
async function createContext(folder, chosen) {
  const tarballs = await pack(join(folder, 'packages'));
  const files = Object.fromEntries([...tarballs].map(([name, path]) => [name, `file:${path}`]));
  const project = join(folder, 'project');
  const write = (file, text) => {
    mkdirSync(join(project, file, '..'), { recursive: true });
    writeFileSync(join(project, file), text);
  };
  const { devDependencies: known } = readJson(root, 'package.json');
  const manifest = {
    name: 'program',
    private: true,
    type: 'module',
    dependencies: {
      ...files,
      rxjs: known.rxjs,
      zod: known.zod,
      ...Object.assign({}, ...chosen.map(({ dependencies }) => dependencies)),
    },
  };
  write('package.json', JSON.stringify(manifest, null, 2));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  // Suites need packages that ask for a newer Node than the one that installs them.
  const all = ['install', '--no-engine-strict', ...flags];
  const { code, output } = await npm(all, { quiet: true, cwd: project });
  if (code !== 0) throw new Error(`npm install failed:\n${output}`);
  return {
    project,
    tarballs,
    entries: published().flatMap(entriesOf),
    write,
    /** Runs a program in the project, and resolves to its exit code and output. */
    run: (program, args, options = {}) =>
      run(program, args, { quiet: true, cwd: project, ...options }),
  };
}

/** The specifiers of a package, without those that are no modules. */
function entriesOf(path) {
  const { name, exports = {} } = readJson(root, path, 'package.json');
  return Object.entries(exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([entry]) => `${name}${entry.slice(1)}`);
}

const resultOf = ({ problem, skipped }) => {
  if (problem !== undefined) return 'fails';
  return skipped === undefined ? 'works' : 'skipped';
};

async function main({ only = names, keep }) {
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`There is no suite called ${unknown.join(', ')}.`);
  await setUp();
  const chosen = suites.filter(({ name }) => only.includes(name));
  const folder = mkdtempSync(join(tmpdir(), 'compat-'));
  try {
    const context = await createContext(folder, chosen);
    const results = [];
    for (const { name, rows } of chosen) {
      for (const row of await rows(context)) results.push({ suite: name, ...row });
    }
    print(results);
    return results.some(({ problem }) => problem !== undefined) ? 1 : 0;
  } finally {
    if (keep) console.log(`The project is in ${join(folder, 'project')}.`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

function print(results) {
  console.log('| Suite | Check | Result |\n| --- | --- | --- |');
  for (const row of results) {
    const note = row.skipped === undefined ? '' : `: ${row.skipped}`;
    console.log(`| ${row.suite} | ${row.what} | ${resultOf(row)}${note} |`);
  }
  for (const { what, problem } of results.filter((row) => row.problem !== undefined)) {
    console.error(`\n${what}:\n${problem.trimEnd()}`);
  }
}

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      keep: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) console.log(help);
  else process.exitCode = await main(values);
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
