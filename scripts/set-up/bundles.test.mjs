import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { writeBundles } from './bundles.mjs';

let root;
const at = (file) => join(root, file);
function write(file, text) {
  mkdirSync(dirname(at(file)), { recursive: true });
  writeFileSync(at(file), text);
}
const json = (file, value) => write(file, JSON.stringify(value));
const entry = (types, name) => ({
  types: `./dist/${types}.d.ts`,
  default: `./dist/bundle/${name}.js`,
});
const bundled = () =>
  readdirSync(at('packages/millrace/dist/bundle')).filter((name) => name.endsWith('.js'));
/** Runs a module beside the packages, and resolves to what it prints. */
const run = (code, ...flags) => {
  write('program.mjs', code);
  return execFileSync(process.execPath, [...flags, at('program.mjs')], { encoding: 'utf8' });
};

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'bundles-')));
  json('package.json', { workspaces: ['packages/*'] });
  json('packages/bench/package.json', { private: true });
  json('packages/millrace/package.json', {
    name: 'core',
    type: 'module',
    sideEffects: false,
    exports: {
      '.': entry('index', 'index'),
      './memory': entry('layers/memory/index', 'memory'),
      './journal': entry('journal/index', 'journal'),
      './values': entry('values/index', 'values'),
      './package.json': './package.json',
    },
    bin: { core: 'dist/bundle/bin.js' },
  });
  write('packages/millrace/src/index.ts', "export { mark } from './mark.js';");
  write(
    'packages/millrace/src/mark.ts',
    ["import { word } from './word.js';", 'export const mark: symbol = Symbol(word);'].join('\n'),
  );
  write('packages/millrace/src/word.ts', "export const word = 'mark';");
  write(
    'packages/millrace/src/layers/memory/index.ts',
    "export { mark as sameMark } from '../../mark.js';\nexport const lazy = () => import('../../lazy.js');",
  );
  write('packages/millrace/src/values/index.ts', "export { word as value } from '../word.js';");
  write('packages/millrace/src/journal/index.ts', "export { word } from '../word.js';");
  write('packages/millrace/src/lazy.ts', "export { mark } from './mark.js';");
  write(
    'packages/millrace/src/bin.ts',
    "#!/usr/bin/env node\nimport { word } from './word.js';\nconsole.log(word);",
  );
});
afterEach(() => rmSync(root, { recursive: true }));

const core = './packages/millrace/dist/bundle';

it('lets all entries share one instance of everything', async () => {
  await writeBundles(root);
  const out = run(`
    import { mark } from '${core}/index.js';
    import { sameMark, lazy } from '${core}/memory.js';
    console.log(mark === sameMark, mark === (await lazy()).mark);
  `);
  expect(out).toBe('true true\n');
});

it('writes what the main entry evaluates into one chunk, and one for what a program needs of it', async () => {
  await writeBundles(root);
  expect(bundled().map((name) => name.replace(/-\w+\.js$/, '-….js'))).toEqual([
    'bin.js',
    'chunk-….js',
    'chunk-….js',
    'index.js',
    'journal.js',
    'lazy-….js',
    'memory.js',
    'values.js',
  ]);
});

it('bundles the main entry for browsers with what replaces its modules there', async () => {
  json('packages/millrace/package.json', {
    name: 'core',
    type: 'module',
    sideEffects: false,
    exports: { '.': { ...entry('index', 'index'), browser: './dist/bundle/index.browser.js' } },
  });
  write('packages/millrace/src/word.browser.ts', "export const word = 'browser';");
  await writeBundles(root);
  const wordIn = (name) =>
    run(`import { mark } from '${core}/${name}'; console.log(mark.description);`);
  expect(bundled()).toEqual(['index.browser.js', 'index.js']);
  expect(wordIn('index.js')).toBe('mark\n');
  expect(wordIn('index.browser.js')).toBe('browser\n');
});

it('bundles programs', async () => {
  await writeBundles(root);
  expect(run(`await import('${core}/bin.js');`)).toBe('mark\n');
});

it('bundles a thread with what it uses of the framework, and without the packages that it does not use', async () => {
  json('packages/store/package.json', {
    name: 'store',
    type: 'module',
    exports: { '.': entry('index', 'index') },
  });
  write('packages/store/src/index.ts', "export const store = 'store';");
  write(
    'packages/store/src/sqlite/write.worker.ts',
    "import { value } from 'core/values';\nimport { basename } from 'node:path';\nconsole.log(basename(value));",
  );
  write(
    'packages/millrace/src/values/index.ts',
    "import { of } from 'rxjs';\nexport { word as value } from '../word.js';\nexport const value$ = of(1);",
  );
  await writeBundles(root);
  const thread = readFileSync(at('packages/store/dist/bundle/write.worker.js'), 'utf8');
  expect(thread.match(/^import .*$/gm)).toEqual(['import { basename } from "node:path";']);
  expect(run("await import('./packages/store/dist/bundle/write.worker.js');")).toBe('mark\n');
});

it('removes what an earlier build wrote', async () => {
  await writeBundles(root);
  const before = bundled();
  write('packages/millrace/src/word.ts', "export const word = 'other';");
  await writeBundles(root);
  expect(bundled()).toHaveLength(before.length);
  expect(bundled()).not.toEqual(before);
  expect(run(`await import('${core}/bin.js');`)).toBe('other\n');
});

it('imports a package that may have side effects through a module of its own', async () => {
  json('packages/millrace/node_modules/effects/package.json', {
    name: 'effects',
    main: 'index.js',
  });
  write('packages/millrace/node_modules/effects/index.js', 'exports.effect = 1;');
  write(
    'packages/millrace/src/word.ts',
    "import { effect } from 'effects';\nexport const word = `e${effect}`;",
  );
  await writeBundles(root);
  expect(bundled()).toContain('from-effects.js');
  expect(readFileSync(at(`packages/millrace/dist/bundle/from-effects.js`), 'utf8')).toMatch(
    /\beffect\b/,
  );
  expect(run(`await import('${core}/bin.js');`)).toBe('e1\n');
});

it('imports no module for its effects, as it has none: bundlers of programs would warn of it', async () => {
  write(
    'packages/millrace/src/late.ts',
    "import { basename } from 'node:path';\nexport const late = basename;",
  );
  write(
    'packages/millrace/src/index.ts',
    "export { word } from './word.js';\nexport const load = () => import('./late.js');",
  );
  await writeBundles(root);
  const texts = bundled()
    .filter((name) => name !== 'bin.js')
    .map((name) => readFileSync(at(`packages/millrace/dist/bundle/${name}`), 'utf8'));
  expect(texts.some((text) => text.includes('late'))).toBe(true);
  expect(texts.filter((text) => /^import ?"\.\//m.test(text))).toEqual([]);
});

it('fails if a source does not exist', async () => {
  write('packages/millrace/src/index.ts', "export { mark } from './absent.js';");
  await expect(writeBundles(root)).rejects.toThrow(/absent/);
});
