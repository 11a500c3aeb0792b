import { expect, it, jest } from '@jest/globals';
import type { Tool } from 'millrace';
import { runTool } from './run-tool.test-support.js';
import { openVendor } from './services/vendor.test-support.js';

const libraries = ['nodemailer', 'fast-xml-parser'];
const mail = {
  server: { host: '127.0.0.1' },
  from: 'mill@mill.test',
  recipients: ['@mill.test'],
  approve: true,
};

it('loads the libraries of a tool only on its first use', async () => {
  const loaded: string[] = [];
  for (const name of libraries) {
    jest.unstable_mockModule(name, () => {
      loaded.push(name);
      return {};
    });
  }
  jest.resetModules();
  const { arxiv, pubmed, sendMail, weather, wikipedia } = await import('./index.js');
  sendMail(mail);
  for (const create of [arxiv, pubmed, wikipedia]) create();
  weather({ provider: 'open-meteo' });
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
  const { arxiv, sendMail } = await import('./index.js');
  const cases = [
    [sendMail(mail), { to: ['ada@mill.test'], subject: 'x', text: 'x' }, 'npm install nodemailer'],
    [arxiv({ baseURL: vendor.url }), { query: 'x' }, 'npm install fast-xml-parser'],
  ] as const;
  for (const [tool, input, command] of cases) {
    const error: unknown = await runTool(tool as Tool, input).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'config', message: expect.stringContaining(command) });
  }
});
