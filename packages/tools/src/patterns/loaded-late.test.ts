import { expect, it, jest } from '@jest/globals';
import type { Tool } from '@millrace/core';
import { runTool } from '../run-tool.test-support.js';
import { openVendor } from '../services/vendor.test-support.js';

it('X13: @millrace/tools does not load the engine, @millrace/tools/patterns does', async () => {
  const load = jest.fn(() => ({ RE2JS: {} }));
  jest.unstable_mockModule('re2js', load);
  await import('../index.js');
  expect(load).not.toHaveBeenCalled();
  await import('./index.js');
  expect(load).toHaveBeenCalledTimes(1);
});

const libraries = [
  ...['undici', '@mdream/js', 'diff', 're2js', 'mathjs', 'pg', 'nodemailer', 'fast-xml-parser'],
  ...['quickjs-emscripten-core', '@jitl/quickjs-wasmfile-release-sync'],
];
const mail = {
  server: { host: '127.0.0.1' },
  from: 'mill@mill.test',
  recipients: ['@mill.test'],
  approve: true,
};

it('no entry loads the libraries of another, and those of its own only on first use', async () => {
  const loaded: string[] = [];
  for (const name of libraries) {
    jest.unstable_mockModule(name, () => {
      loaded.push(name);
      return {};
    });
  }
  jest.resetModules();
  await import('../index.js');
  (await import('../web/index.js')).fetchPage();
  (await import('../files/index.js')).fileTools({ approve: true });
  (await import('../javascript/index.js')).runJavaScript();
  (await import('../sql/index.js')).sqlTools({ postgres: 'postgres://127.0.0.1/x' });
  (await import('../mail/index.js')).sendMail(mail);
  const { arxiv, pubmed, wikipedia } = await import('../search-web/index.js');
  for (const create of [arxiv, pubmed, wikipedia]) create();
  (await import('../services/index.js')).weather({ provider: 'open-meteo' });
  expect(loaded).toEqual([]);
});

it('names the command that installs a missing library', async () => {
  const vendor = await openVendor();
  vendor.answers = { '/api/query': '<feed/>' };
  for (const name of libraries) {
    jest.unstable_mockModule(name, () => {
      throw new Error(`Cannot find package '${name}'`);
    });
  }
  jest.resetModules();
  const [, query] = (await import('../sql/index.js')).sqlTools({
    postgres: 'postgres://127.0.0.1/x',
  });
  const { sendMail } = await import('../mail/index.js');
  const { arxiv } = await import('../search-web/index.js');
  const cases = [
    [query, { sql: 'select 1' }, 'npm install pg'],
    [sendMail(mail), { to: ['ada@mill.test'], subject: 'x', text: 'x' }, 'npm install nodemailer'],
    [arxiv({ baseUrl: vendor.url }), { query: 'x' }, 'npm install fast-xml-parser'],
  ] as const;
  for (const [tool, input, command] of cases) {
    const error: unknown = await runTool(tool as Tool, input).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'config', message: expect.stringContaining(command) });
  }
});
