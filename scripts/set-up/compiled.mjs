import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readJsonIfWhole, workspaces } from '../workspaces.mjs';

/** A hash of all that the compiler and the bundler read, and one of the names of all that they wrote. */
export const compiledState = (root) => ({ sources: sources(root), output: output(root) });

/** The state that the last build left, and the part it built. Without `sources`, that build did not succeed. */
export const lastCompiled = (root) => readJsonIfWhole(stamp(root)) ?? {};

/** Whether the last build was of this part, of these sources, and its output is still there. */
export const isCompiled = (root, part) =>
  isDeepStrictEqual({ ...compiledState(root), part }, lastCompiled(root));

export function rememberCompiled(root, state) {
  mkdirSync(dirname(stamp(root)), { recursive: true });
  writeFileSync(stamp(root), JSON.stringify(state));
}

// A new installation removes it, so that changed dependencies mean a new build.
export const stamp = (root) => join(root, 'node_modules/.millrace/compiled.json');

function sources(root) {
  const files = workspaces(root).flatMap((workspace) => filesIn(root, workspace));
  const read = ['tsconfig.json', ...files.filter((file) => /\.(tsx?|json|css|html)$/.test(file))];
  const bundler = ['bundles.mjs', 'pages.mjs', 'pure.mjs'].map(
    (file) => new URL(file, import.meta.url),
  );
  return hash([
    ...read.flatMap((file) => [file, readFileSync(join(root, file))]),
    ...bundler.map((url) => readFileSync(url)),
  ]);
}

const output = (root) =>
  hash(workspaces(root).flatMap((workspace) => filesIn(root, `${workspace}/dist`)));

const notSource = new Set(['dist', 'node_modules', 'temp']);

function filesIn(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !notSource.has(name))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesIn(root, path) : [path];
    });
}

const hash = (parts) =>
  parts.reduce((sum, part) => sum.update(part).update('\0'), createHash('sha256')).digest('hex');
