import type { Browser, Page } from 'playwright-core';

/** The cost of a page while it works. */
export interface Cost {
  /** Script time of each update, in milliseconds: from one animation frame to the end of the next one. */
  readonly updates: readonly number[];
  /** The largest number of elements. */
  readonly elements: number;
  /** The heap after a garbage collection, in bytes. */
  readonly heap: number;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
}

const scripts = new Set(['FunctionCall', 'RunMicrotasks', 'EvaluateScript', 'TimerFire']);

/** Measures a page while work is done, from Chromium's own trace. */
export const costOf = async (
  browser: Browser,
  page: Page,
  work: () => Promise<unknown>,
): Promise<Cost> => {
  const tracing = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  tracing.on('Tracing.dataCollected', ({ value }) => {
    for (const event of value as unknown as readonly TraceEvent[]) {
      if (event.ph === 'X' && (scripts.has(event.name) || event.name === 'FireAnimationFrame'))
        events.push(event);
    }
  });
  const ended = new Promise<void>((resolve) => {
    tracing.on('Tracing.tracingComplete', () => resolve());
  });
  await tracing.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['devtools.timeline', 'v8'] },
  });
  let isOver = false;
  const counting = (async (): Promise<number> => {
    let most = 0;
    while (!isOver) most = Math.max(most, await page.locator('*').count());
    return most;
  })();
  await work();
  isOver = true;
  const elements = await counting;
  await tracing.send('Tracing.end');
  await ended;
  const own = await page.context().newCDPSession(page);
  await own.send('HeapProfiler.collectGarbage');
  const { usedSize } = await own.send('Runtime.getHeapUsage');
  return { updates: updatesIn(events), elements, heap: usedSize };
};

/** Script times between animation frames. Scripts within others count once. */
const updatesIn = (events: readonly TraceEvent[]): readonly number[] => {
  const frames = events.filter(({ name }) => name === 'FireAnimationFrame');
  const [thread] = frames;
  if (thread === undefined) return [];
  const onThread = events
    .filter(({ tid }) => tid === thread.tid)
    .sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0));
  const updates: number[] = [];
  let sum = 0;
  let until = 0;
  for (const { name, ts, dur = 0 } of onThread) {
    const end = ts + dur;
    sum += Math.max(0, end - Math.max(ts, until));
    until = Math.max(until, end);
    if (name !== 'FireAnimationFrame') continue;
    updates.push(sum / 1_000);
    sum = 0;
  }
  return updates;
};

export const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
