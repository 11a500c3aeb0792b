import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Model } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { main } from './main.js';
import { fakeEnvironment } from './terminal/fake-terminal.test-support.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-prices-'));
});
afterAll(() => rm(directory, { recursive: true }));

const model = (): Model =>
  scriptedModel([text('Hi.'), { type: 'usage', usage: { inputTokens: 3_000 } }]);

/** A clock that has stopped, so that prices do not become old. */
const scheduler: SchedulerLike = {
  now: () => Date.parse('2026-12-24'),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
};

const asks = ['--no-store', 'Hi'];

const ran = async (
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  command: readonly string[] = asks,
) => {
  const { environment, out, err } = fakeEnvironment([...command, ...argv], {
    env,
    directory,
    scheduler,
    models: [
      {
        variables: [],
        factory: () => Promise.resolve({ model: model(), about: 'scripted', unit: 'tokens' }),
      },
    ],
  });
  return { code: await main(environment), out: out.text(), err: err.text() };
};

/** The smallest flow that asks a model. */
const flow = {
  version: 1,
  name: 'letter',
  components: {
    begin: { component_name: 'begin', downstream: ['draft'] },
    draft: { component_name: 'agent', params: { llm_id: 'any' }, downstream: ['say'] },
    say: { component_name: 'message', params: { content: '{{draft@output}}' } },
  },
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

  it('show what a flow costs', async () => {
    await writeFile(join(directory, 'prices.json'), JSON.stringify(list));
    await writeFile(join(directory, 'flow.json'), JSON.stringify(flow));
    const { code, out, err } = await ran(['--prices', 'prices.json'], {}, [
      ...['flow', 'run', 'flow.json', 'Hi'],
    ]);
    expect([code, err, out]).toEqual([0, '', expect.stringContaining('0.0015 USD')]);
  });

  it('print a warning once they are more than 180 days old', async () => {
    const ago = async (days: number) => {
      const date = new Date(scheduler.now() - days * 86_400_000).toISOString().slice(0, 10);
      await writeFile(join(directory, 'old.json'), JSON.stringify({ ...list, date }));
      const { code, out, err } = await ran(['--prices', 'old.json', '--no-color']);
      expect([code, out]).toEqual([0, expect.stringContaining('0.0015 USD')]);
      return err;
    };
    expect(await ago(180)).toBe('');
    expect(await ago(181)).toBe(
      'The prices of old.json are of 2026-06-26, 181 days ago. Check them, and set their date.\n',
    );
  });

  it.each([
    ['absent.json', undefined, /The price file absent\.json cannot be read: ENOENT/],
    ['text.json', 'sk-secret', /The price file text\.json is not JSON\./],
    ['list.json', '[]', /The price file list\.json needs an object with 'currency'/],
    [
      'day.json',
      '{"currency":"USD","prices":{}}',
      /The price file day\.json needs 'date': the day/,
    ],
  ])('that has a mistake is refused: %s', async (name, written, why) => {
    if (written !== undefined) await writeFile(join(directory, name), written);
    const { code, out, err } = await ran(['--prices', name]);
    expect([code, out, err]).toEqual([1, '', expect.stringMatching(why)]);
    expect(err).not.toContain('sk-secret');
  });
});
