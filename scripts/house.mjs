// Measures the size and shape of the code, and compares each number with its ceiling.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import ts from 'typescript';
import kernelBoundary from './house/kernel.cjs';
import { setUp } from './set-up.mjs';
import {
  ambiguousNames,
  keysOfLayer,
  longFunctions,
  memberCounts,
  members,
  spine,
  tripCounts,
} from './house/spine.mjs';
import { wordsInDocs, wordsInPackages, wordsInTitles } from './words.mjs';
import { readJson, root, workspaces } from './workspaces.mjs';

const help = `npm run house -- [--check | --lower] [--json] [--members] [--long]

Measures the size and shape of the code, and prints each number beside its ceiling and its aim.

  --check  exits with 1 if a number exceeds its ceiling
  --lower  lowers ceilings to a tenth above the measured numbers; never raises one
  --json   prints JSON instead of a table
  --help   prints this text

Others print what a number counts, and nothing else:

  --members  each member of a context and of a call, with the rooms that read it
  --long     the functions of more than 60 lines

The ceilings are in scripts/house/ceilings.json. They say "look before you grow": raise one in the commit that needs it,
with the reason ("ceiling" and "why").`;

/** Each row, with its aim if it has one. */
const aims = {
  'spine: lines': 1500,
  'contexts: types': 1,
  'contexts: members': 12,
  'contexts: members that one room reads': 0,
  'call: members': undefined,
  'call: members that one room reads': 0,
  'keys of a layer': 10,
  'trip to the socket: named functions': 140,
  'trip to the socket: returns to a file': 80,
  'trip to the socket: calls': 320,
  'trip to the socket: calls into flow': 40,
  'kernel: names with two meanings': 0,
  'functions of more than 60 lines, all packages': 60,
  'kernel: files': undefined,
  'kernel: lines': undefined,
  'kernel: bytes gzipped, without rxjs': 28_000,
  'createAgent and tool: bytes gzipped, without rxjs and ajv': 30_000,
  'createAgent and tool: files': undefined,
  'millrace: source files': undefined,
  'millrace: source lines': undefined,
  'millrace: loose files': 7,
  'millrace: folders': undefined,
  'files that run for a question': undefined,
  'files that run for one tool call': undefined,
  'subscriptions: question': 22,
  'subscriptions: turn with a tool': 15,
  'subscriptions: further tool call': 1,
  'subscriptions: turn with an async tool': 22,
  'subscriptions: further async tool call': 5,
  'subscriptions: delta': 0,
  'subscriptions: journal': 19,
  'subscriptions: delta with a journal': 0,
  'options of an agent': 8,
  'options of a call': 12,
  'public names': undefined,
  'public names without a user': 0,
  'relapse words: packages': 0,
  'relapse words: docs': 0,
  'relapse words: titles of tests': 0,
};

const core = 'packages/millrace';
const source = `${core}/src`;
const ceilingsFile = join(root, 'scripts/house/ceilings.json');
const isTest = (file) => /\.test(-d|-support)?\.ts$/.test(file);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const read = (file) => readFileSync(join(root, file), 'utf8');
/** The examples of doc comments do not count: documentation costs nothing. */
const linesOf = (file) =>
  read(file)
    .replaceAll(/(?:^ *\*\n)?^ *\* @example\n[^]*?(?=^ *\*\/)/gm, '')
    .split('\n').length - 1;

/** The files below a folder, as paths from the root with forward slashes. */
const filesIn = (folder, pattern) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((file) => posix.join(folder, file.replaceAll('\\', '/')))
    .filter((file) => pattern.test(file) && !/\/(node_modules|dist|temp)\//.test(file));

// ---------------------------------------------------------------- modules

const parse = (file) => ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest);

/** The product code of a package, parsed, by file. Test tools are left out. */
const parsed = (folder) =>
  new Map(
    filesIn(`${folder}/src`, /\.ts$/)
      .filter((file) => !isTest(file) && !file.startsWith(`${folder}/src/testing/`))
      .map((file) => [file, parse(file)]),
  );

const isKernel = (file) => {
  const { path, pathNot } = kernelBoundary.kernel;
  return new RegExp(path).test(file) && !pathNot.some((pattern) => new RegExp(pattern).test(file));
};

// ---------------------------------------------------------------- bundles

/** Bundles a module that imports from dist: the files of core that esbuild reads, those it keeps, and the gzipped bytes. A dynamic import is loaded by few programs, and counts in none of the three. */
async function bundle(contents, external) {
  const { resolve } = createRequire(import.meta.url);
  const { build } = createRequire(resolve('@size-limit/esbuild'))('esbuild');
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: join(root, core, 'dist') },
    absWorkingDir: root,
    bundle: true,
    plugins: [withoutLazyImports],
    minify: true,
    format: 'esm',
    external,
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const sources = (files) =>
    files
      .filter((file) => file.startsWith(`${core}/dist/`))
      .map((file) => file.replace('/dist/', '/src/').replace(/\.js$/, '.ts'));
  const [{ inputs }] = Object.values(metafile.outputs);
  return {
    read: sources(Object.keys(metafile.inputs)),
    kept: sources(Object.keys(inputs).filter((file) => inputs[file].bytesInOutput > 0)),
    // Rounded up: versions of zlib differ by a few bytes.
    gzip: Math.ceil(gzipSync(outputFiles[0].contents).length / 100) * 100,
  };
}

const withoutLazyImports = {
  name: 'without lazy imports',
  setup({ onResolve }) {
    onResolve({ filter: /.*/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: 'lazy', external: true } : undefined,
    );
  },
};

// ---------------------------------------------------------------- the public interface

/** The names that the entries of a package export. */
function publicNames(folder, modules) {
  const entries = Object.values(readJson(root, folder, 'package.json').exports)
    .flatMap(({ types }) => types ?? [])
    .map((types) => posix.join(folder, types.replace('/dist/', '/src/').replace(/\.d\.ts$/, '.ts')))
    .map((file) => modules.get(file) ?? parse(file));
  return entries.flatMap(({ statements }) =>
    statements.flatMap(({ exportClause, modifiers, name, declarationList }) => {
      if (exportClause?.elements) return exportClause.elements.map((each) => each.name.text);
      if (!modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return [];
      return (declarationList?.declarations ?? [{ name }]).map((each) => each.name.text);
    }),
  );
}

/** The names that no example, page or other package mentions. */
function unnamed(names, folder) {
  const sources = workspaces(root)
    .filter((other) => other !== folder && !other.startsWith('examples'))
    .flatMap((other) => filesIn(`${other}/src`, /\.ts$/));
  const pages = [
    'README.md',
    ...filesIn('docs', /\.(ts|md)$/),
    ...filesIn('examples', /\.(ts|md)$/),
    ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
  ];
  const words = new Set(
    [...sources, ...pages].flatMap((file) => read(file).match(/[\w$]+/g) ?? []),
  );
  return names.filter((name) => !words.has(name));
}

/** The number of members of an interface, those that it inherits included. */
function membersOf(name, modules) {
  const found = modules
    .flatMap((module) => module.statements)
    .find((each) => ts.isInterfaceDeclaration(each) && each.name.text === name);
  if (found === undefined) {
    throw new Error(`There is no interface called ${name}, so its options cannot be counted.`);
  }
  const parents = (found.heritageClauses ?? []).flatMap(({ types }) => types);
  return (
    found.members.length + sum(parents.map(({ expression }) => membersOf(expression.text, modules)))
  );
}

// ---------------------------------------------------------------- calls

/** Measures the calls of subscriptions.test-support.ts, on dist. */
async function measuredCalls() {
  const file = join(root, core, 'dist/call/subscriptions.test-support.js');
  const { secondCall, subscriptionCosts } = await import(pathToFileURL(file));
  const costs = Object.entries(await subscriptionCosts());
  return {
    ...Object.fromEntries(costs.map(([name, count]) => [`subscriptions: ${name}`, count])),
    'files that run for a question': (await filesThatRun(await secondCall({}))).length,
    'files that run for one tool call': (await filesThatRun(await secondCall({ turns: 1 }))).length,
  };
}

/** The files of core with a function that runs during the call, by the precise coverage of V8. */
async function filesThatRun(call) {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true });
    await call();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const dist = pathToFileURL(join(root, core, 'dist/')).href;
    return result
      .filter(
        ({ url, functions }) =>
          url.startsWith(dist) &&
          !/\.test-support\.js$/.test(url) &&
          functions.some(({ ranges: [range] }) => range.count > 0),
      )
      .map(({ url }) => url.slice(dist.length).replace(/\.js$/, '.ts'))
      .sort();
  } finally {
    session.disconnect();
  }
}

// ---------------------------------------------------------------- the house

async function measure() {
  const packages = [{ folder: core, modules: parsed(core) }];
  const sources = packages.flatMap(({ modules }) => [...modules.values()]);
  const { modules } = packages.find(({ folder }) => folder === core);
  const names = packages.map((each) => [
    each.folder,
    new Set(publicNames(each.folder, each.modules)),
  ]);
  const top = readdirSync(join(root, source), { withFileTypes: true });
  const entry = kernelBoundary.entry.slice(`${source}/`.length).replace(/\.ts$/, '.js');

  const kernel = await bundle(`export * from './${entry}'`, ['rxjs']);
  const agent = await bundle(`export { createAgent, tool } from './index.js'`, ['rxjs', 'ajv']);

  const ofKernel = [...modules.values()].filter(({ fileName }) => isKernel(fileName));
  const ambiguous = ambiguousNames(ofKernel);

  const numbers = {
    'spine: lines': sum(spine.map((file) => linesOf(`${source}/${file}`))),
    ...memberCounts(),
    'keys of a layer': keysOfLayer(sources),
    ...tripCounts(),
    'kernel: names with two meanings': ambiguous.length,
    'functions of more than 60 lines, all packages': longFunctions(allModules()).length,
    'kernel: files': kernel.read.length,
    'kernel: lines': sum(kernel.read.map(linesOf)),
    'kernel: bytes gzipped, without rxjs': kernel.gzip,
    'createAgent and tool: bytes gzipped, without rxjs and ajv': agent.gzip,
    'createAgent and tool: files': agent.kept.length,
    'millrace: source files': sources.length,
    'millrace: source lines': sum(sources.map(({ fileName }) => linesOf(fileName))),
    'millrace: loose files': top.filter((each) => each.isFile() && !isTest(each.name)).length,
    'millrace: folders': top.filter((each) => each.isDirectory()).length,
    'options of an agent': membersOf('AgentOptions', sources),
    'options of a call': membersOf('CallOptions', sources),
    'public names': sum(names.map(([, { size }]) => size)),
    'public names without a user': sum(
      names.map(([folder, each]) => unnamed([...each], folder).length),
    ),
    'relapse words: packages': wordsInPackages().length,
    'relapse words: docs': wordsInDocs().length,
    'relapse words: titles of tests': wordsInTitles().length,
    ...(await measuredCalls()),
  };
  return { numbers, ambiguous };
}

/** The product code of all packages, parsed. */
const allModules = () =>
  readdirSync(join(root, 'packages')).flatMap((name) =>
    existsSync(join(root, 'packages', name, 'src')) ? [...parsed(`packages/${name}`).values()] : [],
  );

function rowsOf(numbers, ceilings) {
  const unknown = [...Object.keys(ceilings), ...Object.keys(numbers)].filter(
    (what) => !(what in aims),
  );
  if (unknown.length > 0) throw new Error(`Unknown rows: ${unknown.join(', ')}.`);
  return Object.entries(aims).map(([what, aim]) => ({
    what,
    today: numbers[what],
    ceiling: ceilings[what]?.ceiling ?? ceilings[what],
    aim,
  }));
}

/** Counts that the design fixes have no air. */
const isExact = (what) =>
  /^(millrace: |subscriptions: |options of |contexts: |call: |keys of )| without a user|two meanings|relapse/.test(
    what,
  );

/** Never raises a ceiling; a row without one gets that of today. A ceiling that stays keeps its reason. */
function lowered(rows, ceilings) {
  const lower = rows.map(({ today, ceiling = Infinity, ...row }) => {
    const wanted = isExact(row.what) ? today : Math.ceil(today * 1.1);
    return { ...row, today, ceiling: Math.min(wanted, ceiling) };
  });
  const written = lower.map(({ what, ceiling }) => {
    const kept = ceilings[what];
    return [what, kept?.ceiling === ceiling ? kept : ceiling];
  });
  writeFileSync(ceilingsFile, `${JSON.stringify(Object.fromEntries(written), null, 2)}\n`);
  return lower;
}

function print({ rows, ambiguous }) {
  const text = (value) => value?.toLocaleString('en') ?? '–';
  const texts = rows.map(({ what, today, ceiling, aim }) => [
    what,
    text(today),
    text(ceiling),
    text(aim),
  ]);
  const table = [['What', 'Today', 'Ceiling', 'Aim'], ...texts];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  for (const [what, ...values] of table) {
    const padded = values.map((value, index) => value.padStart(widths[index + 1]));
    console.log([what.padEnd(widths[0]), ...padded].join('   '));
  }
  console.log(`\nNames of the kernel with two meanings: ${ambiguous.join(', ') || 'none'}`);
}

function check(rows) {
  const above = rows.filter(({ today, ceiling }) => !(today <= ceiling));
  for (const { what, today, ceiling } of above) {
    console.error(
      ceiling === undefined
        ? `${what}: no ceiling. Run npm run house -- --lower to set it.`
        : `${what}: ${today} exceeds the ceiling of ${ceiling}.`,
    );
  }
  if (above.length > 0) process.exitCode = 1;
}

async function main(options) {
  await setUp();
  if (options.long) return console.log(longFunctions(allModules()).join('\n'));
  if (options.members) {
    for (const { name, rooms } of members()) console.log(`${name.padEnd(28)} ${rooms.join(', ')}`);
    return undefined;
  }
  const { numbers, ambiguous } = await measure();
  const ceilings = readJson(ceilingsFile);
  const measured = rowsOf(numbers, ceilings);
  const rows = options.lower ? lowered(measured, ceilings) : measured;
  if (options.json) console.log(JSON.stringify({ rows, ambiguous }, null, 2));
  else print({ rows, ambiguous });
  if (options.check) check(rows);
}

try {
  const flag = { type: 'boolean', default: false };
  const { values } = parseArgs({
    options: {
      check: flag,
      lower: flag,
      json: flag,
      members: flag,
      long: flag,
      help: flag,
    },
  });
  if (values.help) console.log(help);
  else await main(values);
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
