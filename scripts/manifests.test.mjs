import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { problemsOf, published } from './manifests.mjs';

it.each(published())('%s can be installed beside other packages, and has a page on npm', (path) => {
  expect(problemsOf(path)).toEqual([]);
});

let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  write('package.json', { repository: { url: 'git+https://example.test/mill.git' } });
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(file, value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

const complete = {
  description: 'A wheel',
  keywords: ['mill'],
  homepage: 'https://example.test/mill/tree/main/packages/wheel#readme',
  bugs: { url: 'https://example.test/mill/issues' },
  repository: {
    type: 'git',
    url: 'git+https://example.test/mill.git',
    directory: 'packages/wheel',
  },
  license: 'MIT',
  engines: { node: '>=20' },
  dependencies: { axle: '^1.0.0' },
  peerDependencies: { water: '>=2' },
  devDependencies: { saw: '1.2.3' },
};
const page =
  'Turns.\n\n```sh\nnpm install wheel\n```\n\n```ts\nturn();\n```\n\nSee [more](../../docs/guide.md).\n';
const problems = (manifest, readme = page) => {
  write('packages/wheel/package.json', manifest);
  write('packages/wheel/README.md', readme);
  return problemsOf('packages/wheel', folder);
};

it('accepts a complete manifest, whose development dependencies may be pinned', () => {
  expect(problems(complete)).toEqual([]);
});

it('names pinned versions, missing fields, other addresses, and what a page lacks', () => {
  const manifest = {
    ...complete,
    keywords: [],
    bugs: { url: 'https://example.test/elsewhere' },
    dependencies: { axle: '1.0.0' },
    peerDependencies: { water: '=2.0.0' },
  };
  expect(problems(manifest, 'Turns.\n')).toEqual([
    'bugs is not that of the repository: node scripts/manifests.mjs --write',
    'keywords is missing',
    'dependencies: axle is pinned to 1.0.0: write ^1.0.0',
    'peerDependencies: water is pinned to =2.0.0: write ^2.0.0',
    'README.md has no line that installs it',
    'README.md has no example',
    'README.md has no link to the docs',
  ]);
});
