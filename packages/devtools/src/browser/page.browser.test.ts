import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { forked } from '../page/model/forks.test-support.js';
import { eventOf, travel } from '../page/model/runs.test-support.js';
import type { Hold } from '../page/protocol.js';
import {
  elementsOf,
  entryOf,
  type FakeServer,
  hello,
  inBrowser,
  shoot,
  violations,
} from './page.test-support.js';

const { open } = inBrowser();

const { items } = travel();

/** A server that shows the journey, and a call that has failed. */
const showJourney = async (page: Page, server: FakeServer) => {
  server.send(
    hello,
    {
      line: 'calls',
      calls: [
        entryOf('c', { tokens: 3346, endedAt: 1_700_000_004_351 }),
        entryOf('d', {
          input: 'Book a table for two.',
          status: 'failed',
          reason: 'rateLimited',
          startedAt: 1_699_999_000_000,
          isOpen: false,
        }),
      ],
    },
    { line: 'log', id: 'c', from: 0, items },
  );
  await page.locator('[data-kind=postActing]').first().waitFor();
};

const slider = (page: Page) => page.getByRole('slider', { name: 'Position in the log' });
const chat = (page: Page) => page.getByTestId('conversation');

describe('the address', () => {
  it('has the token, which moves to the tab: a reload still has it', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    expect(page.url()).toBe(server.url);
    await page.reload();
    await page.locator('[data-kind=postActing]').first().waitFor();
  });

  it.each(['', '#token=another'])(
    'without the right token (%j), the page asks for it',
    async (address) => {
      const { page } = await open({}, address);
      await page.getByRole('heading', { name: 'The address has no valid token' }).waitFor();
      expect(await violations(page)).toEqual([]);
    },
  );
});

describe('a call', () => {
  it.each(['light', 'dark'] as const)(
    'is a marble diagram beside its conversation, in %s',
    async (colorScheme) => {
      const { page, server } = await open({ colorScheme });
      await showJourney(page, server);
      const lanes = await page
        .locator('svg [data-lane]')
        .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-lane')));
      expect(lanes).toEqual([
        ...['call', 'model', 'tool', 'tool', 'call', 'model', 'tool', 'events', 'tool', 'events'],
      ]);
      const labels = await page
        .getByRole('list', { name: 'Names of the lanes' })
        .getByRole('listitem')
        .allInnerTexts();
      expect(labels.map((label) => label.replace(/^\W+/u, '').split(/\s/u)[0])).toEqual([
        ...['Guide', 'model', 'weather', 'Researcher', 'Researcher', 'model', 'search', 'events'],
        ...['tickets', 'events'],
      ]);
      expect(await chat(page).innerText()).toContain('The ferry to Flåm leaves at 08:10');
      expect(await page.getByTestId('totals').innerText()).toMatch(
        /tokens in\s+4.0k\s+tokens out\s+287/u,
      );
      expect(await elementsOf(page)).toBeLessThan(700);
      expect(await violations(page)).toEqual([]);
      await shoot(page, colorScheme);
    },
  );

  it('opens a marble in the inspector, and a cluster larger', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    await page.locator('[data-kind=toolError]').click();
    const inspector = page.getByTestId('inspector');
    expect(await inspector.innerText()).toMatch(
      /postActing[\s\S]*Failed: The counter is closed\.[\s\S]*Guide/u,
    );
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'inspector');
    const cluster = page.locator('.cluster[data-kind=text]').last();
    const count = Number(await cluster.getAttribute('data-count'));
    await cluster.click();
    await inspector.getByText('Joined text').waitFor();
    await page.waitForFunction(
      (before) => document.querySelectorAll('.marble[data-kind=text]').length >= before,
      count,
    );
    await page.getByRole('button', { name: 'Fit and follow' }).click();
    await page.waitForFunction(
      () => document.querySelectorAll('.marble[data-kind=text]').length < 5,
    );
  });

  it('zooms and moves with the wheel and the pointer', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    const box = await page.locator('.plot').boundingBox();
    if (box === null) throw new Error('There is no plot.');
    const ticks = () => page.locator('.axis text').allTextContents();
    const before = await ticks();
    await page.mouse.move(box.x + 300, box.y + 100);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -400);
    await page.keyboard.up('Control');
    await page.waitForFunction(
      (text) => document.querySelector('.axis text')?.textContent !== text,
      before[0],
    );
    const zoomed = await ticks();
    await page.mouse.down();
    await page.mouse.move(box.x + 60, box.y + 100, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(
      (text) => document.querySelector('.axis text')?.textContent !== text,
      zoomed[0],
    );
    const moved = await ticks();
    await page.mouse.wheel(-300, 0);
    await page.waitForFunction(
      (text) => document.querySelector('.axis text')?.textContent !== text,
      moved[0],
    );
    await page.keyboard.press('f');
    await page.waitForFunction(
      (text) => document.querySelector('.axis text')?.textContent === text,
      before[0],
    );
    // A zoom by keys aims at the position.
    await slider(page).fill('20');
    const cursor = page.getByTestId('cursor');
    const xOf = async () => Number(/^M([\d.]+)/u.exec((await cursor.getAttribute('d')) ?? '')?.[1]);
    const x = await xOf();
    const unzoomed = (await ticks()).join();
    await page.keyboard.press('+');
    await page.waitForFunction(
      (texts) =>
        [...document.querySelectorAll('.axis text')].map((it) => it.textContent).join() !== texts,
      unzoomed,
    );
    expect(await xOf()).toBeCloseTo(x, 3);
  });

  it('travels in time: the conversation is as it was', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    const size = Number(await slider(page).getAttribute('max'));
    await chat(page)
      .getByRole('button', { name: /The counter is closed/u })
      .click();
    await page.getByTestId('inspector').getByRole('heading', { name: 'postActing' }).waitFor();
    expect(await page.getByTestId('inspector').innerText()).toMatch(
      /step\s+1\/\d[\s\S]*Fork from/u,
    );
    await page.keyboard.press('1');
    await slider(page).fill('9');
    await page.getByTestId('cursor').waitFor({ state: 'attached' });
    expect(await chat(page).innerText()).not.toContain('08:10');
    expect(await page.getByRole('button', { name: 'Live' }).getAttribute('aria-pressed')).toBe(
      'false',
    );
    await page.locator('.rows').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('.scrubber')?.value === '11',
    );
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByTestId('inspector').getByRole('heading', { name: 'preReasoning' }).waitFor();
    await page.keyboard.press('1');
    await shoot(page, 'travel');
    expect(await violations(page)).toEqual([]);
    await page.getByRole('combobox', { name: 'Speed' }).selectOption('16');
    await page.keyboard.press(' ');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.getByRole('button', { name: 'Live', pressed: true }).waitFor();
    expect(await slider(page).inputValue()).toBe(String(size));
  });

  it('is interrupted by its button, while it runs', async () => {
    const { page, server } = await open();
    server.send(
      hello,
      { line: 'calls', calls: [entryOf('c', { status: 'running' })] },
      { line: 'log', id: 'c', from: 0, items: items.slice(0, 20) },
    );
    await page.getByRole('button', { name: 'Interrupt' }).click();
    expect(await server.asks(1)).toEqual([{ method: 'POST', path: 'calls/c/interrupt', body: {} }]);
  });

  it('has the layers of its agents', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.send({
      line: 'layers',
      id: 'c',
      callId: 'c',
      layers: [{ name: 'journal', priority: 30, parts: ['call', 'step'] }],
    });
    await page.getByRole('tab', { name: 'Layers' }).click();
    await page.getByText('call, step').waitFor();
    await page.getByText('lower is further out').waitFor();
  });
});

describe('the list of calls', () => {
  it('is searched by words, by status and in the logs, and asks for a log that it lacks', async () => {
    const { page, server } = await open();
    server.answer = ({ path }) => (path.startsWith('search') ? { ids: ['c'] } : undefined);
    await showJourney(page, server);
    const list = page.getByRole('list', { name: 'Calls' }).getByRole('listitem');
    expect(await list.count()).toBe(2);
    await page.keyboard.press('/');
    await page.keyboard.insertText('table');
    expect((await server.asks(1)).map(({ path }) => path)).toEqual(['search?q=table']);
    await page.locator('[data-call=c]').waitFor();
    await page.getByRole('combobox', { name: 'Status' }).selectOption('failed');
    await page.locator('[data-call=c]').waitFor({ state: 'detached' });
    await list
      .getByRole('button', { name: /Book a table/u })
      .first()
      .click();
    await page.getByText('Loading the log').waitFor();
    expect((await server.asks(2)).at(-1)?.path).toBe('calls/d');
  });

  it('shows thousands of calls, and only those that are visible', async () => {
    const { page, server } = await open();
    server.send(hello, {
      line: 'calls',
      calls: Array.from({ length: 5000 }, (_, at) => entryOf(`c${at}`, { startedAt: at })),
    });
    await page.locator('[data-call=c4999]').waitFor();
    expect(await elementsOf(page)).toBeLessThan(500);
    await page.locator('.call-list').evaluate((list) => (list.scrollTop = list.scrollHeight));
    await page.locator('[data-call=c0]').waitFor();
  });

  it('exports a call, and shows it when it is imported again', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export this call' }).click(),
    ]);
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Import a call' }).click(),
    ]);
    await chooser.setFiles(await download.path());
    await page.locator('[data-call="file c"].shown').waitFor();
    expect(await chat(page).innerText()).toContain('The ferry to Flåm leaves at 08:10');
  });
});

describe('a connection', () => {
  it('that is lost is tried again, and the page goes back to what it showed', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.drop();
    await page.getByText('Connection lost, trying again').waitFor();
    await page.getByText('Connected').waitFor();
    server.send({ line: 'notice', text: 'A call was dropped from the list.' });
    await page.getByText('A call was dropped from the list.').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.getByText('A call was dropped from the list.').waitFor({ state: 'detached' });
    await page.locator('[data-kind=toolError]').waitFor();
  });

  it('that is refused later is explained, beside what the page has', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.refuse();
    await page.getByText('The server refuses the token').waitFor();
    await page.locator('[data-kind=toolError]').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('asks for a log again that has a hole', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.send({ line: 'log', id: 'c', from: items.length + 4, items: [eventOf('warning', 1)] });
    expect((await server.asks(1)).map(({ path }) => path)).toEqual(['calls/c']);
  });

  it('without calls, says how they appear', async () => {
    const { page, server } = await open();
    server.send(hello);
    await page.getByRole('heading', { name: 'Waiting for the first call' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'help');
  });
});

const holdOf = (id: string): Hold => ({
  ...{ id, rootId: 'c', callId: 'c', agent: ['Guide'], since: 0 },
  event: eventOf('preActing', 0, {
    toolCall: { type: 'tool_call', id: 'w1', name: 'weather', input: { city: 'Flåm' } },
  }),
});

describe('breakpoints', () => {
  it('are set by type, and with text', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    await page.getByRole('tab', { name: 'Breakpoints' }).click();
    await page.getByRole('checkbox', { name: 'preActing' }).click();
    server.send({ line: 'breakpoints', breakpoints: [{ type: 'preActing' }] });
    await page.getByRole('textbox', { name: 'Hold preActing only with this text' }).fill('weather');
    // The page is drawn again before the filter is sent.
    server.send({ line: 'notice', text: 'Something else.' });
    await page.getByText('Something else.').waitFor();
    expect(await server.asks(2)).toEqual([
      { method: 'PUT', path: 'breakpoints', body: [{ type: 'preActing' }] },
      { method: 'PUT', path: 'breakpoints', body: [{ type: 'preActing', text: 'weather' }] },
    ]);
    // Other keys of a checkbox are those of the page.
    await page.getByRole('checkbox', { name: 'postActing' }).focus();
    await page.keyboard.press('3');
    await page.getByRole('tab', { name: 'Inspector', selected: true }).waitFor();
    await page.keyboard.press('4');
    await shoot(page, 'breakpoints');
    expect(await violations(page)).toEqual([]);
  });

  it.each([
    ['F8', 'continue'],
    ['F10', 'step'],
  ])('hold a call until %s, with an edit that is JSON', async (key, action) => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.send({ line: 'holds', holds: [holdOf('h1')] });
    const editor = page.getByRole('textbox', { name: 'The event as JSON' });
    const text = await editor.inputValue();
    expect(JSON.parse(text)).toEqual({ toolCall: holdOf('h1').event['toolCall'] });
    await editor.fill('{');
    expect(await page.getByRole('button', { name: /^Continue/u }).isDisabled()).toBe(true);
    await editor.fill(text.replace('Flåm', 'Oslo'));
    await page.getByTestId('hold').getByText('Edited').waitFor();
    if (key === 'F8') {
      expect(await violations(page)).toEqual([]);
      await shoot(page, 'hold');
    }
    await page.keyboard.press(key);
    expect(await server.asks(1)).toEqual([
      {
        method: 'POST',
        path: 'holds/h1',
        body: { action, event: JSON.parse(text.replace('Flåm', 'Oslo')) },
      },
    ]);
  });

  it('hold a call that is vetoed', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.send({ line: 'holds', holds: [holdOf('h1'), holdOf('h2')] });
    await page.getByText('1 more held · When does the ferry').waitFor();
    const showing = page.getByRole('button', { name: 'Show the call' });
    expect(await showing.count()).toBe(0);
    await page.locator('[data-call=d] .call-main').click();
    await showing.click();
    await page.locator('[data-call=c].shown').waitFor();
    await page.getByRole('button', { name: 'Veto' }).click();
    expect((await server.asks(2)).at(-1)).toEqual({
      ...{ method: 'POST', path: 'holds/h1', body: { action: 'veto' } },
    });
    server.send({ line: 'holds', holds: [] });
    await page.getByTestId('hold').waitFor({ state: 'detached' });
  });
});

describe('a fork', () => {
  it('is made from a step, with edits, and shown beside its original', async () => {
    const { original, fork } = await forked('2', 'Rain.');
    const { page, server } = await open();
    server.answer = ({ path }) => (path.endsWith('fork') ? { id: 'f' } : undefined);
    server.send(
      hello,
      { line: 'calls', calls: [entryOf('c', { input: 'Boat or train?' })] },
      { line: 'log', id: 'c', from: 0, items: original },
    );
    await chat(page).getByRole('button', { name: 'Guide · message 2' }).click();
    await page.getByRole('button', { name: 'Fork from here' }).click();
    const dialog = page.getByRole('dialog', { name: 'Fork from step 2' });
    await dialog.getByRole('combobox', { name: 'Edit a kept step' }).selectOption('1/0');
    await dialog.getByRole('textbox', { name: 'Result of weather (1/0)' }).fill('Rain.');
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'fork');
    await dialog.getByRole('button', { name: 'Fork with 1 edit' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(server.asked).toEqual([
      { method: 'POST', path: 'calls/c/fork', body: { at: '2', edits: { '1/0': 'Rain.' } } },
    ]);
    server.send(
      {
        line: 'calls',
        calls: [
          entryOf('f', {
            input: 'Boat or train?',
            startedAt: 1_700_000_009_000,
            forkedFrom: { callId: 'c', at: '2' },
          }),
        ],
      },
      { line: 'log', id: 'f', from: 0, items: fork },
    );
    const difference = page.getByTestId('difference');
    await difference.getByText('The first difference: weather 1/0.').waitFor();
    expect(await difference.locator('del').allInnerTexts()).toContain('boat');
    expect(await difference.locator('ins').allInnerTexts()).toContain('train');
    await page.locator('[data-run="1"][data-lane=model]').waitFor();
    expect(await page.locator('.plot .fork-line').count()).toBe(2);
    expect(await page.locator('.plot .difference-line').count()).toBe(2);
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'compare');
    // While both are compared, the conversation is that of the shown call, or of the other one.
    await page.keyboard.press('1');
    await chat(page).getByText('Take the train, it rains.').waitFor();
    await page.getByRole('button', { name: 'Original', exact: true }).click();
    await chat(page).getByText('Take the boat, it stays dry.').waitFor();
    await page.getByRole('button', { name: 'Fork', exact: true }).click();
    await page.getByRole('button', { name: 'End the comparison' }).click();
    const weather = chat(page).getByRole('article').filter({ hasText: 'weather' });
    expect((await weather.innerText()).split(/\s+/u)).toEqual(
      expect.arrayContaining(['kept', 'edited', 'Rain.']),
    );
    await chat(page).getByText('Boat or train?').waitFor();
    expect(await chat(page).innerText()).not.toContain('replayed');
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'fork-alone');
  });

  it('compares any two calls', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    server.send(
      { line: 'calls', calls: [entryOf('e', { input: 'The same question', startedAt: 1 })] },
      { line: 'log', id: 'e', from: 0, items: travel({ callId: 'e', weather: 'Rain.' }).items },
    );
    await page.getByRole('button', { name: 'Compare with: The same question' }).click();
    await page.getByTestId('difference').getByText('The first difference: weather 1/0.').waitFor();
    await page.getByRole('button', { name: 'End the comparison' }).click();
    await chat(page).waitFor();
  });
});

describe('small windows and settings', () => {
  it('is usable on narrow screens', async () => {
    const { page, server } = await open({ viewport: { width: 1000, height: 700 } });
    await showJourney(page, server);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1000);
    expect(await violations(page)).toEqual([]);
    const tabs = await page
      .getByRole('tab')
      .evaluateAll((all) => all.map((tab) => tab.getBoundingClientRect().right));
    expect(Math.max(...tabs)).toBeLessThanOrEqual(1000);
    await shoot(page, 'narrow');
    await page.setViewportSize({ width: 700, height: 900 });
    await page.waitForFunction(() => document.documentElement.scrollWidth === 700);
    await shoot(page, 'narrower');
  });

  it('shows costs when prices are known', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('spinbutton', { name: /input tokens/u }).fill('3');
    await page.getByRole('spinbutton', { name: /output tokens/u }).fill('15');
    await page.keyboard.press('Escape');
    await page.getByTestId('totals').getByText('$0.0164').waitFor();
  });

  it('shows the cost that a reply has, in place of one by prices of the page', async () => {
    const { page, server } = await open();
    await showJourney(page, server);
    const entry = entryOf('c', { tokens: 3346, endedAt: 1_700_000_004_351, cost: '0.42 EUR' });
    server.send({ line: 'calls', calls: [entry] });
    await page.getByTestId('totals').getByText('0.42 EUR').waitFor();
    await page
      .locator('[data-call=c]')
      .getByText(/ · 0\.42 EUR/u)
      .waitFor();
    // Before the end, it is not known.
    await slider(page).press('Home');
    await page.getByTestId('totals').getByText('0.42 EUR').waitFor({ state: 'detached' });
  });
});
