// Checks the manifest and the README of each package that is published; `--write` adds the addresses of the repository, and how npm publishes them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson, root, workspaces } from './workspaces.mjs';

/** The packages that are published, relative to the root. */
export const published = (folder = root) =>
  workspaces(folder).filter((path) => readJson(folder, path, 'package.json').private !== true);

/** How npm publishes a package: for everyone, with a statement of the commit and the workflow that built it. */
export const publishConfig = { access: 'public', provenance: true };

/** The root manifest has the address of the repository, and every package repeats it: npm reads it there. */
const addresses = (folder, path) => {
  const { url } = readJson(folder, 'package.json').repository;
  const page = url.replace(/^git\+|\.git$/g, '');
  return {
    homepage: `${page}/tree/main/${path}#readme`,
    bugs: { url: `${page}/issues` },
    repository: { type: 'git', url, directory: path },
  };
};

/** What a program that installs a package would stumble over. */
export function problemsOf(path, folder = root) {
  const manifest = readJson(folder, path, 'package.json');
  const wrong = Object.entries(addresses(folder, path))
    .filter(([field, value]) => JSON.stringify(manifest[field]) !== JSON.stringify(value))
    .map(([field]) => `${field} is not that of the repository: node scripts/manifests.mjs --write`);
  const missing = ['description', 'license', 'engines', 'keywords']
    .filter((field) => Object.keys(manifest[field] ?? {}).length === 0)
    .map((field) => `${field} is missing`);
  const pinned = ['dependencies', 'peerDependencies', 'optionalDependencies'].flatMap((field) =>
    Object.entries(manifest[field] ?? {})
      .filter(([, range]) => /^[\d=]/.test(range))
      .map(
        ([name, range]) =>
          `${field}: ${name} is pinned to ${range}: write ^${range.replace('=', '')}`,
      ),
  );
  return [...wrong, ...missing, ...pinned, ...readmeProblems(join(folder, path, 'README.md'))];
}

/** A README is the page of its package on npm, which follows links that are relative to the repository. */
function readmeProblems(file) {
  if (!existsSync(file)) return ['README.md is missing'];
  const text = readFileSync(file, 'utf8');
  const parts = {
    'a line that installs it': /\bnpm (?:install|create) /,
    'an example': /^```(?:ts|sh)\n/m,
    'a link to the docs': /\]\(\.\.\/\.\.\/(?:docs\/|README)/,
  };
  return Object.entries(parts)
    .filter(([, pattern]) => !pattern.test(text))
    .map(([part]) => `README.md has no ${part.replace(/^an? /, '')}`);
}

function write(path) {
  const file = join(root, path, 'package.json');
  const { name, version, description, keywords, ...rest } = readJson(file);
  const manifest = {
    name,
    version,
    description,
    keywords,
    ...addresses(root, path),
    publishConfig,
  };
  writeFileSync(file, `${JSON.stringify({ ...manifest, ...without(rest, manifest) }, null, 2)}\n`);
}

const without = (fields, others) =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in others)));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--write')) published().forEach(write);
  for (const path of published()) {
    for (const problem of problemsOf(path)) {
      console.error(`${path}: ${problem}`);
      process.exitCode = 1;
    }
  }
}
