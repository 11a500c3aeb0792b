// Measures what each entry of a package loads and needs: `npm run entries -- tools`.
import { Buffer } from 'node:buffer';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { setUp } from './set-up.mjs';
import { readJson, root } from './workspaces.mjs';

await setUp();
const name = process.argv[2] ?? 'tools';
const folder = join(root, 'packages', name);
const { exports } = readJson(folder, 'package.json');
const kilobytes = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`;
const megabytes = (bytes) => `${(bytes / 1_000_000).toFixed(1)} MB`;

/** The files of Millrace that an entry loads when it is imported, and the packages that it needs then or later. */
async function measured(file) {
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [file],
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    outdir: 'unused',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const loaded = new Set();
  const packages = new Set();
  const visit = (path, isLoaded) => {
    if (isLoaded) loaded.add(path);
    for (const { path: to, kind, external } of metafile.inputs[path].imports) {
      if (external) packages.add(packageOf(to));
      else if (!loaded.has(to)) visit(to, isLoaded && kind === 'import-statement');
    }
  };
  visit(file, true);
  const text = [...loaded].map((path) => readFileSync(join(folder, path), 'utf8')).join('\n');
  const [, thread] = /dist\/bundle\/([\w-]+\.worker\.js)/.exec(text) ?? [];
  const own = thread === undefined ? [] : (await measured(`dist/bundle/${thread}`)).packages;
  return { text, loaded, packages: [...new Set([...packages, ...own])].filter(isForeign) };
}

const packageOf = (specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)[0];
const isForeign = (it) =>
  !/^(node:|@millrace\/|rxjs$)/.test(it) && !builtinModules.includes(it) && it !== 'undici-types';

/** A package with all that it depends on. */
function closure(name, found = new Map()) {
  const place = [join(folder, 'node_modules', name), join(root, 'node_modules', name)].find(
    existsSync,
  );
  if (place === undefined || found.has(name)) return found;
  found.set(name, sizeOf(place));
  for (const other of Object.keys(readJson(place, 'package.json').dependencies ?? {})) {
    closure(other, found);
  }
  return found;
}

const sizeOf = (path) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

console.log('| Entry | Loads | gzipped | Needs | Installed |\n| --- | --- | --- | --- | --- |');
for (const [path, { default: output, types }] of Object.entries(exports)) {
  if (types === undefined) continue;
  const { text, packages } = await measured(output.replace('./', ''));
  const needed = new Map();
  for (const each of packages) closure(each, needed);
  const installed = [...needed.values()].reduce((sum, size) => sum + size, 0);
  const entry = path === '.' ? `@millrace/${name}` : `@millrace/${name}/${basename(path)}`;
  const needs = packages.sort().join(', ') || 'nothing';
  const bytes = Buffer.byteLength(text);
  console.log(
    `| \`${entry}\` | ${kilobytes(bytes)} | ${kilobytes(gzipSync(text).length)} | ${needs} | ${megabytes(installed)} |`,
  );
}
