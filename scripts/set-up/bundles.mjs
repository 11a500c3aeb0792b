import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { readJson, workspaces } from '../workspaces.mjs';
import { markPure } from './pure.mjs';

/**
 * Bundles the entries and programs of each published package into `dist/bundle`: a program then loads a few files
 * instead of hundreds. The entries of a package share chunks, so nothing exists twice; other packages stay imports.
 */
export const writeBundles = (root) =>
  Promise.all(
    workspaces(root)
      .filter((path) => readJson(root, path, 'package.json').private !== true)
      .map((path) => writeBundle(join(root, path))),
  );

async function writeBundle(folder) {
  const manifest = readJson(folder, 'package.json');
  const modules = modulesOf(manifest);
  const shared = await sharedIn(folder, modules);
  const { outputFiles } = await build({
    ...optionsOf(folder),
    entryPoints: [...modules, ...programsOf(manifest)],
    plugins: [inOneChunk(folder, modules, shared)],
  });
  const threads = await Promise.all(threadsOf(folder).map((thread) => threadFiles(folder, thread)));
  const all = [...outputFiles, ...threads.flat(), ...(await browserFiles(folder, manifest))];
  const run = new Set([...programsOf(manifest), ...threadsOf(folder)].map(({ out }) => out));
  const files = all.map((file) => [
    basename(file.path),
    run.has(nameOf(file.path)) || !file.path.endsWith('.js')
      ? file.contents
      : withoutBareImports(file.text),
  ]);
  const gates = await Promise.all(
    shared.gates.map((specifier) => gateTo(specifier, folder, shared.sources)),
  );
  replaceFiles(join(folder, 'dist/bundle'), new Map([...files, ...gates]));
}

/** No module of a package has side effects: bundlers of programs would warn of imports of nothing. */
const withoutBareImports = (text) => text.replaceAll(/^import "\.\/[^"]+";$/gm, '');

const optionsOf = (folder) => ({
  absWorkingDir: folder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'es2022',
  packages: 'external',
  outdir: 'dist/bundle',
  chunkNames: '[name]-[hash]',
  legalComments: 'none',
  logLevel: 'silent',
  write: false,
});

// ---------------------------------------------------------------- entries

const nameOf = (output) => basename(output, '.js');

/** `dist/bundle/b.js` with the types `dist/a/b/index.d.ts` is bundled from `src/a/b/index.ts`. */
const modulesOf = ({ exports }) =>
  Object.values(exports)
    .filter(({ types }) => types !== undefined)
    .map(({ types, default: output }) => ({
      in: types.replace('/dist/', '/src/').replace(/\.d\.ts$/, '.ts'),
      out: nameOf(output),
    }));

/** `dist/bundle/a.js` is bundled from `src/a.ts`; a program elsewhere is a file as it stands. */
const programsOf = ({ bin = {} }) =>
  Object.values(bin)
    .filter((output) => output.startsWith('dist/'))
    .map((output) => ({ in: `./src/${nameOf(output)}.ts`, out: nameOf(output) }));

/** `dist/bundle/b.worker.js` is bundled from `src/a/b.worker.ts`, the program of a thread. */
const threadsOf = (folder) =>
  readdirSync(join(folder, 'src'), { recursive: true })
    .filter((path) => path.endsWith('.worker.ts'))
    .map((path) => ({ in: `./src/${path}`, out: basename(path, '.ts') }));

// ---------------------------------------------------------------- threads

/**
 * A thread loads everything again. So it has what it uses of `millrace` in its own file, and loads nothing else of that,
 * such as RxJS, which takes longer than all its work.
 */
async function threadFiles(folder, thread) {
  const { outputFiles } = await build({
    ...optionsOf(folder),
    entryPoints: [thread],
    plugins: [forThreads(join(folder, '../millrace'))],
  });
  return outputFiles;
}

const forThreads = (framework) => ({
  name: 'for threads',
  setup({ onLoad, onResolve }) {
    const { name, ...manifest } = readJson(framework, 'package.json');
    const sources = modulesOf(manifest).map((it) => [
      it.out === 'index' ? name : `${name}/${it.out}`,
      it.in,
    ]);
    const sourceOf = new Map(sources);
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind === 'entry-point') return undefined;
      const source = sourceOf.get(path);
      return source === undefined
        ? { path, external: true, sideEffects: false }
        : { path: join(framework, source), sideEffects: false };
    });
    onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: markPure(path, readFileSync(path, 'utf8')),
      loader: 'ts',
    }));
  },
});

// ---------------------------------------------------------------- browsers

/** The main entry with the condition `browser` in `exports`. In it, `a.browser.ts` replaces `a.ts`. */
async function browserFiles(folder, { exports }) {
  const output = exports['.']?.browser;
  if (output === undefined) return [];
  const { outputFiles } = await build({
    ...optionsOf(folder),
    entryPoints: [{ in: './src/index.ts', out: nameOf(output) }],
    plugins: [forBrowsers],
  });
  return outputFiles;
}

const forBrowsers = {
  name: 'for browsers',
  setup({ onResolve }) {
    onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) => {
      const replacement = join(resolveDir, path.replace(/\.js$/, '.browser.ts'));
      return existsSync(replacement) ? { path: replacement, sideEffects: false } : undefined;
    });
  },
};

// ---------------------------------------------------------------- the shared chunk

/** Most programs import the first; the packages of this repository import the second. */
const isMain = ({ out }) => out === 'index' || out === 'values';

/**
 * Whether the main entries are one chunk, which every entry loads: those of core share so much that there would be dozens
 * of chunks. Elsewhere there are few, and an entry loads only what it uses.
 */
const hasSharedChunk = (modules) => modules.some(({ out }) => out === 'values');

/** The sources that loading the main entries evaluates, and the packages that these import and that need a gate. */
async function sharedIn(folder, modules) {
  if (!hasSharedChunk(modules)) return { sources: new Set(), gates: [] };
  const entryPoints = modules.filter(isMain);
  const options = { ...optionsOf(folder), metafile: true };
  const { metafile } = await build({ ...options, entryPoints });
  const loaded = new Set(entryPoints.map(({ out }) => `dist/bundle/${out}.js`));
  for (const output of loaded) {
    for (const { path } of metafile.outputs[output].imports.filter(isStatic)) loaded.add(path);
  }
  const sources = [...loaded].flatMap((output) => {
    const { inputs } = metafile.outputs[output];
    return Object.keys(inputs).filter((source) => inputs[source].bytesInOutput > 0);
  });
  const imported = sources.flatMap((source) => metafile.inputs[source].imports);
  const packages = new Set(imported.filter(isOfPackage).map(({ path }) => path));
  return {
    sources: new Set(sources.map((source) => join(folder, source))),
    gates: [...packages].filter((specifier) => mayHaveEffects(folder, specifier)),
  };
}

const isStatic = ({ kind, external }) => kind === 'import-statement' && external !== true;
const isOfPackage = ({ kind, external }) => kind === 'import-statement' && external === true;

/**
 * Lets each module that programs load by itself, an entry or a dynamic import, import all main entries. What these
 * evaluate is then one chunk: esbuild makes one for each set of entries that share sources, which would be dozens.
 * Without a shared chunk, a module that is imported dynamically imports the one that does so, which is loaded by then.
 */
const inOneChunk = (folder, modules, { sources, gates }) => ({
  name: 'in one chunk',
  setup({ onLoad, onResolve }) {
    const sourceOf = (module) => join(folder, module.in);
    const main = hasSharedChunk(modules) ? modules.filter(isMain).map(sourceOf) : [];
    const loaded = new Set(modules.map(sourceOf));
    const importers = new Map();
    onResolve({ filter: /^\./ }, ({ path, importer, resolveDir, kind }) => {
      const source = join(resolveDir, path.replace(/\.js$/, '.ts'));
      if (kind === 'dynamic-import') {
        loaded.add(source);
        // A program waits for what it imports, so that must not import the program.
        if (!hasSharedChunk(modules) && basename(importer) !== 'bin.ts') {
          importers.set(source, importer);
        }
      }
      // Without side effects, an import of no name would be left out.
      const isKept = sources.has(source) || importers.get(importer) === source;
      return isKept ? { path: source, sideEffects: true } : undefined;
    });
    onResolve({ filter: /^[^.]/ }, ({ path, importer, kind }) =>
      kind === 'import-statement' && gates.includes(path) && sources.has(importer)
        ? { path: `./${gateName(path)}`, external: true, sideEffects: false }
        : undefined,
    );
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = markPure(path, readFileSync(path, 'utf8'));
      const others = loaded.has(path) ? main.filter((other) => other !== path) : [];
      if (importers.has(path)) others.push(importers.get(path));
      const also = others
        .map((other) => `\nimport '${specifierOf(other, dirname(path))}';`)
        .join('');
      return { contents: text + also, loader: 'ts' };
    });
  },
});

function specifierOf(path, folder) {
  const specifier = relative(folder, path).replaceAll('\\', '/');
  return specifier.startsWith('.') ? specifier : `./${specifier}`;
}

// ---------------------------------------------------------------- gates

/**
 * Bundlers keep an import of a package that does not deny side effects, even if they drop what uses it. So the shared
 * chunk imports such a package through a module of its own, which they drop.
 */
async function gateTo(specifier, folder, sources) {
  const path = createRequire(join(folder, 'package.json')).resolve(specifier);
  const exported = Object.keys(await import(pathToFileURL(path).href));
  // Of a package in both formats, this is the CommonJS one, whose default the other one lacks.
  const isDefault = new RegExp(`^import \\w+[^;]* from '${specifier}';`, 'm');
  const takesDefault = [...sources].some((source) => isDefault.test(readFileSync(source, 'utf8')));
  const unwanted = ['module.exports', '__esModule', ...(takesDefault ? [] : ['default'])];
  const names = exported.filter((name) => !unwanted.includes(name));
  return [gateName(specifier), `export { ${names.join(', ')} } from '${specifier}';\n`];
}

const gateName = (specifier) => `from-${specifier.replace(/\W+/g, '-')}.js`;

function mayHaveEffects(folder, specifier) {
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier);
  const manifest = [folder, join(folder, '../..')]
    .map((above) => join(above, 'node_modules', name, 'package.json'))
    .find((path) => existsSync(path));
  return manifest !== undefined && readJson(manifest).sideEffects !== false;
}

// ---------------------------------------------------------------- output

/** The names of chunks change with what is in them. */
function replaceFiles(folder, files) {
  mkdirSync(folder, { recursive: true });
  for (const [name, contents] of files) writeFileSync(join(folder, name), contents);
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
}
