import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { firstValueFrom } from 'rxjs';
import { createDevtools, type DevtoolsOptions } from '../index.js';
import { launch, shoot } from './page.test-support.js';
import { steered, travelAgent } from './scene.test-support.js';

let browser: Browser | undefined;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

const closing: (() => unknown)[] = [];
const errors: string[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  expect(errors.splice(0)).toEqual([]);
});

/** A page of real devtools. */
const opened = async (options: DevtoolsOptions = {}) => {
  const dev = createDevtools({ enabled: true, port: 0, print: () => undefined, ...options });
  closing.unshift(dev.close);
  const context = await browser?.newContext({
    reducedMotion: 'reduce',
    viewport: { width: 1440, height: 860 },
  });
  if (context === undefined) throw new Error('There is no browser.');
  closing.unshift(() => context.close());
  const page: Page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on('pageerror', (error) => errors.push(String(error.stack)));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/u.test(message.text())) errors.push(message.text());
  });
  await page.goto(await firstValueFrom(dev.address$));
  await page
    .getByText('guide')
    .first()
    .waitFor({ timeout: 3_000 })
    .catch(() => undefined);
  return { ...dev, page };
};

describe('the devtools of a running agent', () => {
  it('show parallel tools, an interceptor that delays, a sub-agent and a steer', async () => {
    const { page, inspect } = await opened();
    const { reply, steer } = steered(inspect(travelAgent()), 'trip-1');
    setTimeout(() => steer('And the weather in Bergen?'), 60);
    await reply;
    await page.waitForTimeout(500);
    await shoot(page, 'live');
    process.stdout.write(await page.locator('body').ariaSnapshot());
  });
});
