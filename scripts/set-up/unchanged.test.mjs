import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { pathsToLookAt, rememberCompiled } from './compiled.mjs';
import { isUnchanged, lookAt, rememberUnchanged } from './unchanged.mjs';

let root;
const at = (file) => join(root, file);
const long = new Date('2020-01-01');
const loop = 'packages/millrace/src/loop.ts';
function write(file, text) {
  mkdirSync(dirname(at(file)), { recursive: true });
  writeFileSync(at(file), text);
}

/** What is seen once the clock of the file system has moved on. */
const seenLater = () => lookAt(root, pathsToLookAt(root), Date.now() + 10_000);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'unchanged-'));
  write('package.json', '{ "workspaces": ["packages/*"] }');
  write('tsconfig.json', '{}');
  write('packages/millrace/package.json', '{}');
  write('packages/millrace/src/loop.ts', 'export const loop = 1;');
  write('packages/millrace/dist/a/loop.js', 'export const loop = 1;');
  write('packages/left/dist/loop.js', '');
  rememberCompiled(root, { part: 'all' });
  // A change soon after may have the time of the change before it.
  for (const path of Object.values(pathsToLookAt(root)).flat()) {
    if (statSync(at(path), { throwIfNoEntry: false })) utimesSync(at(path), long, long);
  }
  rememberUnchanged(root, 'all', seenLater());
});
afterEach(() => rmSync(root, { recursive: true }));

it('is unchanged as long as nothing happens', () => {
  expect(isUnchanged(root, 'all')).toBe(true);
  expect(isUnchanged(root, 'command')).toBe(true);
});

it('knows nothing of all after a look at a part', () => {
  rememberUnchanged(root, 'command', seenLater());
  expect(isUnchanged(root, 'command')).toBe(true);
  expect(isUnchanged(root, 'all')).toBe(false);
});

it.each([
  ['another size', () => write(loop, 'export const loop = 10;')],
  [
    'the same size and time',
    () => {
      const before = statSync(at(loop)).ctimeMs;
      while (statSync(at(loop)).ctimeMs === before) {
        write(loop, 'export const loop = 2;');
        utimesSync(at(loop), long, long);
      }
    },
  ],
  ['a new source', () => write('packages/millrace/src/phases/acting.ts', '')],
  ['a new name', () => renameSync(at(loop), at('packages/millrace/src/run.ts'))],
  ['a removed source', () => rmSync(at(loop))],
  ['another tsconfig', () => write('tsconfig.json', '{ "files": [] }')],
  ['a new package', () => write('packages/tools/package.json', '{}')],
  ['a package in a folder that was there', () => write('packages/left/package.json', '{}')],
  ['another list of packages', () => write('package.json', '{ "workspaces": [] }')],
  [
    'a file in the place of a folder',
    () => {
      rmSync(at('packages/millrace/src'), { recursive: true });
      write('packages/millrace/src', '');
    },
  ],
  ['a removed output', () => rmSync(at('packages/millrace/dist/a/loop.js'))],
  ['a removed folder of output', () => rmSync(at('packages/millrace/dist'), { recursive: true })],
  ['another build', () => rememberCompiled(root, { part: 'command' })],
  ['a new installation', () => rmSync(at('node_modules'), { recursive: true })],
])('has changed after %s', (_, change) => {
  change();
  expect(isUnchanged(root, 'all')).toBe(false);
});

it('sees nothing in sources that may change again in the same moment', () => {
  write(loop, 'export const loop = 3;');
  expect(lookAt(root, pathsToLookAt(root))).toBeUndefined();
});

it('works without a record if it cannot write one', () => {
  rmSync(at('node_modules'), { recursive: true });
  write('node_modules', 'a file');
  rememberUnchanged(root, 'all', seenLater());
  expect(isUnchanged(root, 'all')).toBe(false);
});
