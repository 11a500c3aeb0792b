import { expect, it } from '@jest/globals';
import { publishConfig } from './manifests.mjs';
import {
  changelogProblems,
  changesIn,
  fileProblems,
  nextVersion,
  versionProblems,
} from './release.mjs';

it.each([
  ['0.1.0', [], '0.1.0'],
  ['0.1.0', ['patch', 'patch'], '0.1.1'],
  ['0.1.1', ['patch', 'minor'], '0.2.0'],
  ['0.2.3', ['major'], '0.3.0'],
  ['1.2.3', ['major', 'patch'], '2.0.0'],
  ['1.2.3', ['minor'], '1.3.0'],
])('after %s and the changes %j comes %s', (version, changes, next) => {
  expect(nextVersion(version, changes)).toBe(next);
});

it('reads the changes of a changeset, and not its text', () => {
  const text = "---\n'millrace': minor\nmillrace: patch\n---\n\nA major: change.\n";
  expect(changesIn(text)).toEqual(['minor', 'patch']);
});

const wheel = { name: 'wheel', version: '0.2.0', publishConfig };

it('accepts packages of one version that depend on each other by its range', () => {
  const axle = { ...wheel, name: 'axle', peerDependencies: { wheel: '^0.2.0', rxjs: '^7.8.1' } };
  expect(versionProblems(new Map(Object.entries({ wheel, axle })))).toEqual([]);
});

it('names other versions, other ranges, and manifests that npm would publish without provenance', () => {
  const axle = { name: 'axle', version: '0.1.0', dependencies: { wheel: '^0.1.0' } };
  expect(versionProblems(new Map(Object.entries({ wheel, axle })))).toEqual([
    'axle: version 0.1.0, not 0.2.0',
    'axle: publishConfig is missing: node scripts/manifests.mjs --write',
    'axle: dependencies has wheel ^0.1.0, not ^0.2.0',
  ]);
});

it('names files that an entry needs and the package lacks, and files that no one should publish', () => {
  const manifest = {
    bin: { wheel: './dist/bin.js' },
    exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './*': './src/*' },
  };
  const files = ['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/bin.js', 'src/a.test.ts', '.env'];
  expect(fileProblems(manifest, files)).toEqual([
    'dist/index.js is missing',
    'src/a.test.ts should not be published',
    '.env should not be published',
  ]);
});

it('wants a heading in the changelog, and a date in it when it publishes', () => {
  const text = '# Changelog\n\n## 0.2.0 (unreleased)\n';
  expect(changelogProblems(text, '0.2.0', { publishes: false })).toEqual([]);
  expect(changelogProblems(text, '0.2.0', { publishes: true })).toEqual([
    'CHANGELOG.md: replace "unreleased" in "## 0.2.0 (unreleased)" by the date',
  ]);
  expect(changelogProblems(text, '0.3.0', { publishes: false })).toEqual([
    'CHANGELOG.md has no heading "## 0.3.0 (…)"',
  ]);
});
