import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Model } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { main } from './main.js';
import { fakeEnvironment } from './terminal/fake-terminal.test-support.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-prices-'));
});
afterAll(() => rm(directory, { recursive: true }));

const model = (): Model =>
  scriptedModel([text('Hi.'), { type: 'usage', usage: { inputTokens: 3_000 } }]);

const ran = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { environment, out, err } = fakeEnvironment(['--no-store', 'Hi', ...argv], {
    env,
    directory,
    models: [
      {
        variables: [],
        factory: () => Promise.resolve({ model: model(), about: 'scripted', unit: 'tokens' }),
      },
    ],
  });
  return { code: await main(environment), out: out.text(), err: err.text() };
};

const list = { currency: 'USD', date: '2026-11-30', prices: { 's*': { input: 0.5, output: 2 } } };

describe('prices of a file', () => {
  it('show what an answer costs, by an option or the environment', async () => {
    await writeFile(join(directory, 'prices.json'), JSON.stringify(list));
    const given = await ran(['--prices', 'prices.json']);
    expect([given.code, given.err]).toEqual([0, '']);
    expect(given.out).toContain(' out · 0.0015 USD');
    expect((await ran([], { MILLRACE_PRICES: 'prices.json' })).out).toContain('0.0015 USD');
    expect((await ran([])).out).not.toContain('USD');
  });

  it.each([
    ['absent.json', undefined, /The prices of absent\.json cannot be read: ENOENT/],
    ['text.json', 'sk-secret', /The prices of text\.json are not JSON\./],
    ['list.json', '[]', /The prices of list\.json takes an object of options/],
    ['day.json', '{"currency":"USD","prices":{}}', /The prices of day\.json needs 'date'/],
  ])('that has a mistake is refused: %s', async (name, written, why) => {
    if (written !== undefined) await writeFile(join(directory, name), written);
    const { code, out, err } = await ran(['--prices', name]);
    expect([code, out, err]).toEqual([1, '', expect.stringMatching(why)]);
    expect(err).not.toContain('sk-secret');
  });
});
