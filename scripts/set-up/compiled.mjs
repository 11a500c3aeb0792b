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
export const stamp = (root) => join(root, stampName);
const stampName = 'node_modules/.millrace/compiled.json';

/** What to look at to see whether this state has changed: the sources with their folders, and beside them what was built of them. */
export function pathsToLookAt(root) {
  const found = workspaces(root);
  const parents = found.map((workspace) => dirname(workspace)).filter((parent) => parent !== '.');
  return {
    sources: [
      ...sourceFiles(root),
      ...bundler.map((file) => `scripts/set-up/${file}`),
      ...found.flatMap((workspace) => entriesIn(root, workspace).filter(isFolder)),
      ...[...new Set(parents)].flatMap((parent) => [parent, ...foldersIn(root, parent)]),
      'package.json',
    ],
    others: [
      ...found.flatMap((workspace) => entriesIn(root, `${workspace}/dist`).filter(isFolder)),
      stampName,
    ],
  };
}

/** One may become a workspace: by its manifest, which changes the time of the folder only. */
const foldersIn = (root, parent) =>
  readdirSync(join(root, parent), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !notSource.has(entry.name))
    .map(({ name }) => `${parent}/${name}`);

const sourceFiles = (root) => [
  'tsconfig.json',
  ...workspaces(root)
    .flatMap((workspace) => entriesIn(root, workspace))
    .filter((file) => /\.(tsx?|json|css|html)$/.test(file)),
];

const bundler = ['bundles.mjs', 'pages.mjs', 'pure.mjs'];

const sources = (root) =>
  hash([
    ...sourceFiles(root).flatMap((file) => [file, readFileSync(join(root, file))]),
    ...bundler.map((file) => readFileSync(new URL(file, import.meta.url))),
  ]);

const output = (root) =>
  hash(
    workspaces(root)
      .flatMap((workspace) => entriesIn(root, `${workspace}/dist`))
      .filter((entry) => !isFolder(entry)),
  );

const notSource = new Set(['dist', 'node_modules', 'temp']);

/** A folder, which ends with a slash, and all that is in it. */
function entriesIn(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  const entries = readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !notSource.has(name))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? entriesIn(root, path) : [path];
    });
  return [`${folder}/`, ...entries];
}

const isFolder = (entry) => entry.endsWith('/');

const hash = (parts) =>
  parts.reduce((sum, part) => sum.update(part).update('\0'), createHash('sha256')).digest('hex');
