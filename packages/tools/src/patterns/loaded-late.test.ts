import { expect, it, jest } from '@jest/globals';
import type { Tool } from 'millrace';
import { runTool } from '../run-tool.test-support.js';

it('X13: @millrace/tools does not load the engine, @millrace/tools/patterns does', async () => {
  const load = jest.fn(() => ({ RE2JS: {} }));
  jest.unstable_mockModule('re2js', load);
  await import('../index.js');
  expect(load).not.toHaveBeenCalled();
  await import('./index.js');
  expect(load).toHaveBeenCalledTimes(1);
});

const libraries = [
  ...['undici', '@mdream/js', 'diff', 're2js', 'mathjs', 'mathjs/lib/browser/math.js', 'pg'],
  ...['quickjs-emscripten-core', '@jitl/quickjs-wasmfile-release-sync'],
];

it('no entry loads the libraries of another, and those of its own only on first use', async () => {
  const loaded: string[] = [];
  for (const name of libraries) {
    jest.unstable_mockModule(name, () => {
      loaded.push(name);
      return {};
    });
  }
  jest.resetModules();
  (await import('../index.js')).calculator();
  const { fetchPage, guardedFetch } = await import('../web/index.js');
  for (const create of [fetchPage, guardedFetch]) create();
  (await import('../files/index.js')).fileTools({ approve: true });
  (await import('../javascript/index.js')).runJavaScript();
  (await import('../sql/index.js')).sqlTools({ postgres: 'postgres://127.0.0.1/x' });
  expect(loaded).toEqual([]);
});

it('names the command that installs a missing library', async () => {
  const missing = (name: string) => () => {
    throw new Error(`Cannot find package '${name}'`);
  };
  for (const name of libraries) jest.unstable_mockModule(name, missing(name));
  // The calculator requires it first.
  jest.doMock('mathjs/lib/browser/math.js', missing('mathjs'));
  jest.resetModules();
  const [, query] = (await import('../sql/index.js')).sqlTools({
    postgres: 'postgres://127.0.0.1/x',
  });
  const { fetchPage, guardedFetch } = await import('../web/index.js');
  const { calculator } = await import('../index.js');
  const local = { allowPrivate: ['127.0.0.1'] };
  const cases = [
    [query, { sql: 'select 1' }, 'npm install pg'],
    [fetchPage(local), { url: 'http://127.0.0.1/' }, 'npm install undici@7'],
    [calculator(), { expression: '1 + 1' }, 'npm install mathjs'],
  ] as const;
  for (const [tool, input, command] of cases) {
    const error: unknown = await runTool(tool as Tool, input).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'config', message: expect.stringContaining(command) });
  }
  await expect(guardedFetch(local)('http://127.0.0.1/')).rejects.toThrow('npm install undici@7');
});
