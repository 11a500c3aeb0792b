// Bundles what nearly every test imports, so that a test file loads a few modules instead of
// several hundred.
import { readdirSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
import { root } from '../workspaces.mjs';

const packages = ['millrace', 'wire'];
/** Those of which there must be one instance. Others become part of the packages that import them. */
const libraries = ['rxjs', 'rxjs/testing', 'zod'];
const options = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  outExtension: { '.js': '.mjs' },
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'error',
  write: false,
  inject: [join(root, 'scripts', 'test', 'globals.mjs')],
};

/** Writes the bundles, in which each agent has the layer if there is one, and resolves to the path of a resolver for Jest. */
export async function bundle(layer) {
  const folder = join(root, 'temp', 'jest', layer === undefined ? 'plain' : 'layered');
  const parts = [
    bundleLibraries(folder),
    ...packages.map((name) => bundlePackage(folder, name, layer !== undefined)),
  ];
  const results = await Promise.all(parts);
  const replacements = Object.assign({}, ...results.map(({ replacements }) => replacements));
  const resolver = {
    path: join(folder, 'resolve.cjs'),
    text: `module.exports = require('../../../scripts/test/resolve.cjs')(${JSON.stringify(replacements, undefined, 1)});\n`,
  };
  const files = [...results.flatMap(({ files }) => files), resolver];
  await Promise.all(files.map(({ path, text }) => writeIfNew(path, text)));
  return resolver.path;
}

/** All in one build: `rxjs` and `rxjs/testing` must share their modules. */
async function bundleLibraries(outdir) {
  const sources = await Promise.all(
    libraries.map(async (name) => {
      const names = Object.keys(await import(name)).filter((name) => name !== 'module.exports');
      return `export { ${names.join(', ')} } from '${name}';`;
    }),
  );
  const fileOf = (name) => `library-${name.replace('/', '-')}`;
  const { outputFiles } = await build({
    ...options,
    outdir,
    splitting: true,
    chunkNames: 'library-chunk-[hash]',
    entryPoints: libraries.map((name) => ({ in: `library:${name}`, out: fileOf(name) })),
    plugins: [virtual('library', (name) => sources[libraries.indexOf(name)])],
  });
  const replacements = libraries.map((name) => [name, join(outdir, `${fileOf(name)}.mjs`)]);
  return { files: outputFiles, replacements: Object.fromEntries(replacements) };
}

/** One module with everything in it, and for each source a module that exports its part of that. */
async function bundlePackage(outdir, name, isLayered) {
  const folder = join(root, 'packages', name, 'src');
  const sources = readdirSync(folder, { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts') && !/\.(test|test-support|test-d)\.ts$/.test(path))
    // The index first: modules are evaluated in the order in which a program would import them.
    .sort((a, b) => Number(b === 'index.ts') - Number(a === 'index.ts') || (a < b ? -1 : 1));
  const exportsOf = await readExports(folder, sources);
  const all = sources.map((path, index) => {
    const names = exportsOf(path).map((name) => `${name} as ${name}_${index}`);
    return `export { ${names.join(', ')} } from './${path}';`;
  });
  const { outputFiles } = await build({
    ...options,
    outdir,
    external: [...libraries, 'millrace', 'millrace/*', '@millrace/*'],
    entryPoints: [{ in: `sources:${name}`, out: name }],
    plugins: [virtual('sources', () => all.join('\n'), folder), ...(isLayered ? [layered] : [])],
  });
  const parts = sources.map((path, index) => {
    const names = exportsOf(path).map((name) => `${name}_${index} as ${name}`);
    const file = join(outdir, name, path.replace(/ts$/, 'mjs'));
    const bundle = relative(dirname(file), join(outdir, `${name}.mjs`));
    return {
      source: join(folder, path),
      path: file,
      text: `export { ${names.join(', ')} } from '${bundle.startsWith('.') ? '' : './'}${bundle}';\n`,
    };
  });
  return {
    files: [...outputFiles, ...parts],
    replacements: Object.fromEntries(parts.map(({ source, path }) => [source, path])),
  };
}

async function readExports(folder, sources) {
  const { metafile } = await build({
    ...options,
    outdir: folder,
    bundle: false,
    sourcemap: false,
    metafile: true,
    outbase: folder,
    entryPoints: sources.map((path) => join(folder, path)),
  });
  const found = Object.values(metafile.outputs).map(({ entryPoint, exports }) => [
    join(root, entryPoint),
    exports,
  ]);
  const names = new Map(found);
  return (path) => names.get(join(folder, path));
}

const virtual = (scheme, contentsOf, resolveDir = root) => ({
  name: scheme,
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(`^${scheme}:`);
    onResolve({ filter }, ({ path }) => ({
      path: `${path.slice(scheme.length + 1)}.mjs`,
      namespace: scheme,
    }));
    onLoad({ filter: /.*/, namespace: scheme }, ({ path }) => ({
      contents: contentsOf(path.slice(0, -'.mjs'.length)),
      resolveDir,
    }));
  },
});

const layered = {
  name: 'layered',
  setup({ onResolve }) {
    const path = join(root, 'scripts', 'test', 'layered.mjs');
    onResolve({ filter: /^\.{1,2}\/(.*\/)?read-use\.[jt]s$/ }, ({ importer }) =>
      importer === path ? undefined : { path },
    );
  },
};

/** Another run of Jest may read these files right now. */
async function writeIfNew(path, text) {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text);
  await rename(draft, path);
}
