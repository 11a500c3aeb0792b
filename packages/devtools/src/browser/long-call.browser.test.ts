import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { eventOf, runOf } from '../page/model/runs.test-support.js';
import { isChunkRun, type LogItem, type Mark } from '../page/protocol.js';
import {
  elementsOf,
  entryOf,
  type FakeServer,
  hello,
  inBrowser,
  shoot,
} from './page.test-support.js';

const { open } = inBrowser();

/** Measures each frame of the page, and the time of its thread. */
const measured = async (page: Page) => {
  await page.addInitScript({
    content: `
      globalThis.costs = [];
      const request = requestAnimationFrame;
      globalThis.requestAnimationFrame = (callback) => request((now) => {
        const start = performance.now();
        callback(now);
        queueMicrotask(() => costs.push(performance.now() - start));
      });`,
  });
  await page.reload();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async (name: string) => {
    const costs = ((await page.evaluate('costs')) as number[]).sort((a, b) => a - b);
    const [median = 0, p95 = 0] = [0.5, 0.95].map((part) => costs[Math.floor(costs.length * part)]);
    const { metrics } = await session.send('Performance.getMetrics');
    const metric = (wanted: string) =>
      metrics.find((one) => one.name === wanted)?.value ?? Infinity;
    const mean = (metric('ScriptDuration') * 1000) / costs.length;
    const megabytes = metric('JSHeapUsedSize') / 1e6;
    const elements = await elementsOf(page);
    console.info(
      `${name}: ${costs.length} updates, ${mean.toFixed(1)} ms of script each; median ${median.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms; ${elements} elements; ${megabytes.toFixed(1)} MB`,
    );
    return { updates: costs.length, mean, median, megabytes, elements };
  };
};

/** Sends a log in batches, as a server does: one a frame. */
const stream = async (page: Page, server: FakeServer, items: readonly LogItem[], size: number) => {
  let from = 0;
  for (let index = 0; index < items.length; index += size) {
    const batch = items.slice(index, index + size);
    server.send({ line: 'log', id: 'c', from, items: batch });
    from += batch.reduce((sum, item) => sum + (isChunkRun(item) ? item.deltas.length : 1), 0);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
};

const isThere = (page: Page, size: number) =>
  page.waitForFunction(
    (max) => document.querySelector<HTMLInputElement>('.scrubber')?.max === max,
    String(size),
  );

describe('50,000 chunks', () => {
  it('cost little for each update, and few elements', async () => {
    const { page, server } = await open();
    server.send(hello, { line: 'calls', calls: [entryOf('c', { status: 'running' })] });
    const measure = await measured(page);
    const deltas = Array.from({ length: 250 }, (_, at) => `word${at % 7} `);
    const runs = Array.from({ length: 200 }, (_, batch) =>
      runOf(deltas, 0, { ats: deltas.map((_delta, index) => (batch * 250 + index) * 2) }),
    );
    await stream(page, server, [eventOf('preReasoning', 0, { messages: [] }), ...runs], 1);
    await isThere(page, 50_001);
    const { updates, mean, median, megabytes, elements } = await measure('50,000 chunks');
    expect(updates).toBeGreaterThan(40);
    // Of a busy machine, only the time of the thread itself is known.
    expect(mean).toBeLessThan(8);
    expect(median).toBeLessThan(16);
    expect(megabytes).toBeLessThan(60);
    expect(elements).toBeLessThan(1500);
    await shoot(page, 'long');
  });
});

const toolsOf = (turn: number) =>
  ['search', 'read', 'write'].map((name, index) => ({
    ...{ type: 'tool_call', id: `t${turn}_${index}`, name, input: { turn } },
  }));

/** The entries of a turn with three tool calls. */
const turnOf = (turn: number, start: number): readonly LogItem[] => {
  const fields = { iteration: turn };
  const chunks = (['thinking', 'text', 'toolInput'] as const).map((kind, index) => {
    const ats = Array.from({ length: 50 }, (_, at) => start + 100 + index * 400 + at * 7);
    const toolCall = { index: 0, id: `t${turn}_0`, name: 'search' };
    return runOf(
      ats.map(() => 'word '),
      0,
      { messageId: `c/${turn}`, ...fields, kind, ats, ...(kind === 'toolInput' && { toolCall }) },
    );
  });
  const at = start + 1400;
  const mark = (id: string, phase: string, later: number) =>
    ({
      at: at + later,
      callId: 'c',
      mark: 'interceptors',
      of: 'postActing',
      id,
      names: ['audit'],
      phase,
    }) as Mark;
  const usage = { inputTokens: 100, outputTokens: 50 };
  return [
    eventOf('preReasoning', start, { ...fields, messages: [] }),
    ...chunks,
    eventOf('postReasoning', at, {
      ...fields,
      message: { id: `c/${turn}`, content: toolsOf(turn) },
      usage,
    }),
    ...toolsOf(turn).flatMap((toolCall, index) => [
      eventOf('preActing', at + index * 90, { ...fields, toolCall }),
      ...Array.from({ length: 10 }, (_, value) =>
        eventOf('actingChunk', at + index * 90 + value, { ...fields, toolCall, value }),
      ),
      mark(`${turn} ${index}`, 'started', index * 90 + 11),
      mark(`${turn} ${index}`, 'ended', index * 90 + 15),
      eventOf('postActing', at + index * 90 + 16, {
        ...{ ...fields, toolCall, ms: 16 },
        result: { content: [{ type: 'text', text: 'ok' }], isError: turn % 9 === 0 },
      }),
    ]),
    eventOf('warning', at + 300, { ...fields, message: 'Slow.' }),
  ];
};

describe('300 turns with 900 tool calls', () => {
  it('are shown in few elements, at any zoom', async () => {
    const { page, server } = await open();
    server.send(hello, { line: 'calls', calls: [entryOf('c', { status: 'running' })] });
    const measure = await measured(page);
    const items = Array.from({ length: 300 }, (_, at) => turnOf(at + 1, at * 1800)).flat();
    await stream(page, server, [eventOf('preCall', 0, { input: [] }), ...items], 200);
    await isThere(page, 1 + 300 * (1 + 150 + 1 + 3 * 14 + 1));
    expect((await measure('Live')).elements).toBeLessThan(1500);
    server.send({ line: 'calls', calls: [entryOf('c', { status: 'done' })] });
    await page.getByRole('button', { name: 'Interrupt' }).waitFor({ state: 'detached' });
    expect((await measure('Fit')).elements).toBeLessThan(1500);
    await page.locator('.rows').evaluate((rows) => (rows.scrollTop = 9000));
    for (let zoom = 0; zoom < 12; zoom += 1) {
      await page.keyboard.press('+');
      await page.evaluate(() => new Promise(requestAnimationFrame));
      expect(await elementsOf(page)).toBeLessThan(1500);
    }
    const { mean } = await measure('Zoomed');
    expect(mean).toBeLessThan(20);
    await shoot(page, 'many-turns');
  });
});
