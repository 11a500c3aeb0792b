import { describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk } from 'millrace';
import { finish, scriptedModel, text } from 'millrace/testing';
import type { Page } from 'playwright-core';
import { concat, concatMap, delay, firstValueFrom, map, NEVER, of, range } from 'rxjs';
import { createDevtools } from '../index.js';
import { inBrowser, shoot } from './page.test-support.js';
import { costOf, percentile } from './script-time.test-support.js';
import { steered, travelAgent } from './scene.test-support.js';

const { browser, openBlank, whenDone } = inBrowser();

/** A page of devtools, with their agents in this process. */
const opened = async () => {
  const dev = createDevtools({ enabled: true, port: 0, forks: true, print: () => undefined });
  whenDone(dev.close);
  const page = await openBlank();
  await page.goto(await firstValueFrom(dev.address$));
  await page.getByText('Connected').waitFor();
  return { ...dev, page };
};

const lane = (page: Page, name: string) =>
  page
    .getByRole('list', { name: 'Names of the lanes' })
    .getByRole('listitem')
    .filter({ hasText: new RegExp(`^\\W*${name}`, 'u') });

describe('the devtools of a running agent', () => {
  it('show parallel tools, an interceptor that delays, a steer and a sub-agent', async () => {
    const { page, inspect } = await opened();
    const { reply, steer } = steered(inspect(travelAgent()), 'trip');
    await lane(page, 'historian').first().waitFor();
    steer('And the weather in Bergen?');
    await reply;
    await page.getByRole('button', { name: 'reply, entry' }).last().waitFor();
    for (const name of ['weather', 'ferry', 'model', 'interceptors', 'events'])
      expect(await lane(page, name).count()).toBeGreaterThan(0);
    expect(await lane(page, 'weather').count()).toBe(2);
    // The sub-agent has lanes of its own, below the tool that calls it.
    expect(await lane(page, 'historian').count()).toBe(2);
    const waits = page.getByRole('button', { name: 'preActing: think twice, complete' });
    expect(await waits.count()).toBe(4);
    expect(await page.getByRole('button', { name: 'steered, entry' }).count()).toBe(1);
    await page.getByText('And the weather in Bergen?').waitFor();
    await shoot(page, 'live');
  });

  it('go back in time, and forth again', async () => {
    const { page, inspect } = await opened();
    await steered(inspect(travelAgent(1)), 'trip').reply;
    const answer = page.getByText('It is sunny in Flåm and it rains in Bergen.');
    await answer.waitFor();
    const slider = page.getByRole('slider', { name: 'Position in the log' });
    const last = Number(await slider.getAttribute('max'));
    await slider.fill(String(Math.floor(last / 3)));
    await answer.waitFor({ state: 'hidden' });
    await page.getByText('I need the weather').waitFor();
    await shoot(page, 'scrubbed');
    await page.getByRole('button', { name: 'Live' }).click();
    await answer.waitFor();
  });

  it('hold a call at a breakpoint, and continue it with an edit', async () => {
    const { page, inspect } = await opened();
    const agent = inspect(
      createAgent({ name: 'guide', model: scriptedModel([text('It leaves at ten.')]) }),
    );
    await page.getByRole('tab', { name: 'Breakpoints' }).click();
    const isSet = page.waitForResponse(/breakpoints/u);
    await page.getByRole('checkbox', { name: 'postReasoning' }).check();
    await isSet;
    const reply = agent.call('When does the ferry leave?');
    const hold = page.getByRole('region', { name: 'Held call' });
    const editor = hold.getByRole('textbox', { name: 'The event as JSON' });
    await editor.fill((await editor.inputValue()).replace('at ten', 'at nine'));
    await hold.getByText('Edited').waitFor();
    await shoot(page, 'held');
    await hold.getByRole('button', { name: /^Continue/u }).click();
    expect((await reply).text).toBe('It leaves at nine.');
    await hold.waitFor({ state: 'hidden' });
    await lane(page, 'holds').waitFor();
  });

  it('fork a call at a step with an edit, and compare both runs', async () => {
    const { page, inspect } = await opened();
    const agent = inspect(travelAgent(1));
    await agent.call('When does the ferry to Flåm leave?', { callId: 'trip' });
    await page.getByRole('button', { name: 'turn 2' }).first().click();
    await page.getByRole('tab', { name: 'Inspector' }).click();
    await page.getByRole('button', { name: /^Fork/u }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Edit a kept step').selectOption('1/1');
    await dialog.getByRole('textbox').fill('At 11:45.');
    await shoot(page, 'fork-form');
    await dialog.getByRole('button', { name: 'Fork with 1 edit' }).click();
    await page.getByTestId('difference').waitFor();
    await page.getByText('The first difference: ferry').waitFor();
    await shoot(page, 'compared');
    expect(await page.getByTestId('difference').textContent()).toContain('11:45');
  });

  it('stay smooth with 50,000 chunks, in a page of bounded size', async () => {
    const { page, inspect } = await opened();
    const count = 50_000;
    const word$ = range(0, count).pipe(
      concatMap((index) => (index % 25 === 0 ? of(index).pipe(delay(1)) : of(index))),
      map((index): ModelChunk => ({ type: 'text', text: `word ${index} ` })),
    );
    const agent = inspect(createAgent({ model: scriptedModel(concat(word$, of(finish()))) }));
    const { updates, elements, heap } = await costOf(browser(), page, async () => {
      await agent.call('Write.');
      await page.getByRole('button', { name: 'reply, entry' }).waitFor({ timeout: 60_000 });
    });
    await shoot(page, 'many');
    process.stdout.write(
      `updates ${updates.length}, p50 ${percentile(updates, 0.5)}, p95 ${percentile(updates, 0.95)}, max ${Math.max(...updates)}, elements ${elements}, heap ${heap}\n`,
    );
    expect(elements).toBeLessThan(2_000);
    expect(heap).toBeLessThan(60_000_000);
  });

  it('interrupt a running call', async () => {
    const { page, inspect } = await opened();
    const reply = inspect(createAgent({ model: scriptedModel(NEVER) })).call('Hi');
    await page.getByRole('button', { name: 'Interrupt' }).click();
    expect((await reply).reason).toBe('interrupted');
    await page.getByText('interrupted').first().waitFor();
  });
});
