import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { travel } from '../page/model/runs.test-support.js';
import { entryOf, hello, launch, shoot, visits } from './page.test-support.js';

let browser: Browser | undefined;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

const { open, close } = visits(() => {
  if (browser === undefined) throw new Error('There is no browser.');
  return browser;
});
afterEach(async () => {
  expect(await close()).toEqual([]);
});

describe('looks', () => {
  it.each(['light', 'dark'] as const)('%s', async (colorScheme) => {
    const { page, server } = await open({ colorScheme });
    const { items } = travel();
    server.send(
      hello,
      {
        line: 'calls',
        calls: [
          entryOf('c', { tokens: 3346, endedAt: 1_700_000_003_861 }),
          entryOf('d', {
            input: 'Another question that is a bit longer than the rest',
            status: 'failed',
            reason: 'rateLimited',
            startedAt: 1_699_999_000_000,
          }),
        ],
      },
      { line: 'log', id: 'c', from: 0, items },
    );
    await page.locator('[data-kind=postActing]').first().waitFor();
    await shoot(page, colorScheme);
  });
});
