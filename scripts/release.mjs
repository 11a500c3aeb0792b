// Checks what a release would publish, sets its version, and publishes it if asked to.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { problemsOf as manifestProblems, published, publishConfig } from './manifests.mjs';
import { packWithFiles } from './pack.mjs';
import { npm } from './run.mjs';
import { setUp } from './set-up.mjs';
import { readJson, root, workspaces } from './workspaces.mjs';

const help = `npm run release -- [--dry-run | --bump | --publish]

  --dry-run  builds and packs the packages, checks their files, versions and manifests and the changelog, and prints
             what would be published (default)
  --bump     sets the next version in every manifest, by the files of .changeset, and removes these
  --publish  checks the same, then publishes the packages to npm with provenance, and tags them. Run it in CI.`;

/**
 * The version after a list of changes. Before 1.0, a breaking change is a minor one: changesets would make 1.0.0 of a
 * minor change, because the packages are peers of each other.
 */
export function nextVersion(version, changes) {
  const [major, minor, patch] = version.split('.').map(Number);
  if (changes.length === 0) return version;
  if (changes.includes('major') && major > 0) return `${major + 1}.0.0`;
  return changes.every((change) => change === 'patch')
    ? `${major}.${minor}.${patch + 1}`
    : `${major}.${minor + 1}.0`;
}

/** The types of change that the text of a changeset has. */
export const changesIn = (text) =>
  [...text.matchAll(/^['"]?[@\w/-]+['"]?: *(patch|minor|major)$/gm)].map(([, type]) => type);

/** What is wrong with the versions of manifests, given by the paths of their packages. */
export function versionProblems(manifests) {
  const all = [...manifests];
  const [[, { version }]] = all;
  const names = new Set(all.map(([, { name }]) => name));
  return all.flatMap(([path, manifest]) => [
    ...(manifest.version === version
      ? []
      : [`${path}: version ${manifest.version}, not ${version}`]),
    ...(JSON.stringify(manifest.publishConfig) === JSON.stringify(publishConfig)
      ? []
      : [`${path}: publishConfig is missing: node scripts/manifests.mjs --write`]),
    ...['dependencies', 'peerDependencies'].flatMap((field) =>
      Object.entries(manifest[field] ?? {})
        .filter(([name, range]) => names.has(name) && range !== `^${version}`)
        .map(([name, range]) => `${path}: ${field} has ${name} ${range}, not ^${version}`),
    ),
  ]);
}

/** What is wrong with the files of a packed package. */
export function fileProblems({ main, bin = {}, exports = {} }, files) {
  const named = [main, ...Object.values(bin), ...targetsOf(exports)]
    .filter((it) => it !== undefined && !it.includes('*'))
    .map((it) => it.replace(/^\.\//, ''));
  const missing = ['README.md', 'LICENSE', ...named].filter((file) => !files.includes(file));
  const strange = files.filter((file) =>
    /\.test[.-]|\.tsbuildinfo$|(^|\/)(\.env|temp\/)/.test(file),
  );
  return [
    ...missing.map((file) => `${file} is missing`),
    ...strange.map((file) => `${file} should not be published`),
  ];
}

const targetsOf = (value) =>
  typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(targetsOf);

/** What the changelog lacks for a version: a heading, and a date in place of `unreleased`. */
export function changelogProblems(text, version, { publishes }) {
  const heading = text.split('\n').find((line) => line.startsWith(`## ${version} `));
  if (heading === undefined) return [`CHANGELOG.md has no heading "## ${version} (…)"`];
  return publishes && heading.includes('unreleased')
    ? [`CHANGELOG.md: replace "unreleased" in "${heading}" by the date`]
    : [];
}

const changesetFolder = join(root, '.changeset');
const changesets = () =>
  readdirSync(changesetFolder)
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .map((name) => join(changesetFolder, name));
const pendingChanges = () => changesets().flatMap((file) => changesIn(readFileSync(file, 'utf8')));

/** Sets a version in every manifest of the workspace, private ones included, and in what they depend on. */
function bump() {
  const paths = workspaces(root);
  const names = new Set(paths.map((path) => readJson(root, path, 'package.json').name));
  const { version } = readJson(root, published()[0], 'package.json');
  const next = nextVersion(version, pendingChanges());
  if (next === version)
    return console.log(`There is no changeset, so the version stays ${version}.`);
  for (const path of paths) {
    const file = join(root, path, 'package.json');
    const text = readFileSync(file, 'utf8').replaceAll(
      /^( *)"([^"]+)": "(\^?)([\d.]+)"/gm,
      (line, space, key, sign, value) =>
        value === version && (key === 'version' || names.has(key))
          ? `${space}"${key}": "${sign}${next}"`
          : line,
    );
    writeFileSync(file, text);
  }
  for (const file of changesets()) rmSync(file);
  console.log(`${version} → ${next}. Run "npm install", and complete CHANGELOG.md.`);
}

/** Packs all packages, prints each, and resolves to the problems of the release. */
async function check({ publishes }) {
  await setUp();
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  try {
    const manifests = new Map(
      published().map((path) => [path, readJson(root, path, 'package.json')]),
    );
    const [{ version }] = manifests.values();
    const packed = await packWithFiles(folder);
    const problems = [...manifests].flatMap(([path, manifest]) => {
      const { files, size } = packed.get(manifest.name);
      console.log(
        `${`${manifest.name}@${manifest.version}`.padEnd(32)} ${files.length} files, ${Math.ceil(size / 1000)} kB`,
      );
      const found = [...fileProblems(manifest, files), ...manifestProblems(path)];
      return found.map((problem) => `${path}: ${problem}`);
    });
    const waiting = changesets().length;
    if (waiting > 0)
      console.log(
        `${waiting} changesets: the next version is ${nextVersion(version, pendingChanges())} (--bump).`,
      );
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
    return [
      ...problems,
      ...versionProblems(manifests),
      ...changelogProblems(changelog, version, { publishes }),
      ...(publishes && waiting > 0
        ? ['.changeset has changes: run "npm run release -- --bump"']
        : []),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function main() {
  const flag = { type: 'boolean' };
  const { values } = parseArgs({
    options: { 'dry-run': flag, bump: flag, publish: flag, help: { ...flag, short: 'h' } },
  });
  if (values.help) return console.log(help);
  if (Object.values(values).filter(Boolean).length > 1)
    throw new Error(`One at a time.\n\n${help}`);
  if (values.bump) return bump();
  const publishes = values.publish === true;
  const problems = await check({ publishes });
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  else if (!publishes) console.log('Nothing was published: that needs --publish.');
  else process.exitCode = (await npm(['exec', '--', 'changeset', 'publish'])).code;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
