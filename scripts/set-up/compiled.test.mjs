import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { compiledState, isCompiled, lastCompiled, rememberCompiled } from './compiled.mjs';

let root;
const at = (file) => join(root, file);
function write(file, text) {
  mkdirSync(dirname(at(file)), { recursive: true });
  writeFileSync(at(file), text);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'compiled-'));
  write('package.json', '{ "workspaces": ["packages/*", "examples"] }');
  write('tsconfig.json', '{}');
  write('packages/millrace/package.json', '{}');
  write('packages/millrace/src/loop.ts', 'export const loop = 1;');
  write('packages/millrace/dist/loop.js', 'export const loop = 1;');
  write('examples/package.json', '{}');
  write('examples/hello.ts', 'export {};');
});
afterEach(() => rmSync(root, { recursive: true }));

it('remembers the state of the last build', () => {
  expect(lastCompiled(root)).toEqual({});
  rememberCompiled(root, compiledState(root));
  expect(lastCompiled(root)).toEqual(compiledState(root));
});

it.each([
  ['all', 'command'],
  ['command', 'all'],
])('a build of %s does not count as one of %s', (part, other) => {
  rememberCompiled(root, { ...compiledState(root), part });
  expect(isCompiled(root, part)).toBe(true);
  expect(isCompiled(root, other)).toBe(false);
});

it('a build that failed does not count', () => {
  rememberCompiled(root, { output: compiledState(root).output, part: 'all' });
  expect(isCompiled(root, 'all')).toBe(false);
});

describe('the sources', () => {
  it.each([
    ['a changed source', () => write('packages/millrace/src/loop.ts', 'export const loop = 2;')],
    ['a new source', () => write('packages/millrace/src/phases/acting.ts', '')],
    ['a deleted source', () => rmSync(at('packages/millrace/src/loop.ts'))],
    ['a changed example', () => write('examples/hello.ts', '')],
    ['a changed tsconfig', () => write('tsconfig.json', '{ "files": [] }')],
    ['a new package', () => write('packages/tools/package.json', '{}')],
  ])('differ after %s', (_, change) => {
    const { sources, output } = compiledState(root);
    change();
    expect(compiledState(root).sources).not.toBe(sources);
    expect(compiledState(root).output).toBe(output);
  });

  it.each([
    ['a touched source', () => utimesSync(at('packages/millrace/src/loop.ts'), 1, 1)],
    ['an installed package', () => write('packages/millrace/node_modules/ajv/package.json', '{}')],
    ['a changed text', () => write('packages/millrace/README.md', 'Hello')],
  ])('are the same after %s', (_, change) => {
    const before = compiledState(root);
    change();
    expect(compiledState(root)).toEqual(before);
  });
});

it.each(['packages/millrace/dist/loop.js', 'packages/millrace/dist'])(
  'the output differs once %s is deleted',
  (path) => {
    const { sources, output } = compiledState(root);
    rmSync(at(path), { recursive: true });
    expect(compiledState(root).output).not.toBe(output);
    expect(compiledState(root).sources).toBe(sources);
  },
);
