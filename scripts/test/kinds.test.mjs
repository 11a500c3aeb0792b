import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from '../workspaces.mjs';
import { chosenFiles, kinds, layers } from './kinds.mjs';

const folders = ['packages', 'conformance', 'bench', 'examples', 'scripts'];

const testFiles = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((path) => /\.test\.(ts|mjs)$/.test(path) && !/\/(node_modules|dist|temp)\//.test(path)),
);

const accepted = (chosen) => {
  const patterns = chosenFiles(chosen).map((pattern) => new RegExp(pattern));
  return testFiles.filter((path) => patterns.some((pattern) => pattern.test(path)));
};

it('every test file is of one kind, which its suffix names', () => {
  const byKind = kinds.map(({ name }) => accepted({ MILLRACE_KIND: name }));
  for (const files of byKind) expect(files).not.toEqual([]);
  expect(byKind.flat().sort()).toEqual([...testFiles].sort());
  const suffixes = testFiles.map((path) => /\.([^./]+)\.test\.\w+$/.exec(path)?.[1] ?? 'quick');
  expect([...new Set(suffixes)].sort()).toEqual(kinds.map(({ name }) => name).sort());
});

it('each layer runs suites of core only', () => {
  for (const layer of layers) {
    const files = accepted({ MILLRACE_LAYER: layer });
    expect(files).not.toEqual([]);
    expect(files.filter((path) => !path.startsWith('packages/millrace/src/'))).toEqual([]);
  }
});

it('without a choice, all test files run', () => {
  expect(accepted({})).toEqual(testFiles);
});
