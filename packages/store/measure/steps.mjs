// What it costs to record a step, beside the syncs that the disk can do:
// node packages/store/measure/steps.mjs [rounds] [store …], with the stores sqlite, files and postgres. Prints medians.
import { Buffer } from 'node:buffer';
import { closeSync, fdatasync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import process from 'node:process';
import console from 'node:console';
import { setTimeout } from 'node:timers';
import {
  concat,
  defer,
  ignoreElements,
  lastValueFrom,
  merge,
  repeat,
  switchMap,
  takeWhile,
} from 'rxjs';

const [rounds = '5', ...names] = process.argv.slice(2);
const stores = names.length > 0 ? names : ['sqlite', 'files', 'postgres'];
const concurrent = 32;
const step = {
  kind: 'step',
  name: 'call/1/0',
  seq: 1,
  text: JSON.stringify({ result: 'x'.repeat(500) }),
};

const openers = {
  sqlite: async (folder) => {
    const { openSqlite } = await import('@millrace/store/sqlite');
    return { store: openSqlite(join(folder, 'calls.db')), end: () => undefined };
  },
  files: async (folder) => {
    const { openFiles } = await import('@millrace/store');
    return { store: openFiles(folder), end: () => undefined };
  },
  postgres: async () => {
    const { startPostgres } = await import('@millrace/postgres-server');
    const { openPostgres } = await import('@millrace/store/postgres');
    const server = await startPostgres();
    return { store: openPostgres(server.url), end: () => server.stop() };
  },
};

/** The syncs of a file in a second, one after the other, each after a write of a page. */
const syncRate = async (folder) => {
  const page = Buffer.alloc(4096, 1);
  const file = openSync(join(folder, 'syncs'), 'w');
  const from = performance.now();
  let count = 0;
  while (performance.now() - from < 300) {
    writeSync(file, page, 0, page.length, (count % 1_000) * page.length);
    await new Promise((resolve, reject) => {
      fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
    });
    count += 1;
  }
  closeSync(file);
  return count / ((performance.now() - from) / 1_000);
};

/** Appends steps to a call, one after the other, until the time is over. Emits how long each took. */
const steps$ = (calls, callId, until) =>
  calls.claim$(callId).pipe(
    switchMap(({ append$ }) =>
      defer(() => {
        const from = performance.now();
        return concat(
          append$([step]).pipe(ignoreElements()),
          defer(() => [performance.now() - from]),
        );
      }).pipe(repeat()),
    ),
    takeWhile(() => performance.now() < until),
  );

const sorted = (values) => [...values].sort((a, b) => a - b);
const quantile = (values, part) => values[Math.floor((values.length - 1) * part)] ?? NaN;

const measure = async (calls, count) => {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const took = [];
  const from = performance.now();
  const until = from + 1_000;
  const cpu = process.cpuUsage();
  delay.enable();
  const callIds = Array.from({ length: count }, (_, at) => `${count} ${at} ${from}`);
  await new Promise((resolve, reject) => {
    merge(...callIds.map((callId) => steps$(calls, callId, until))).subscribe({
      next: (ms) => took.push(ms),
      error: reject,
      complete: resolve,
    });
  });
  delay.disable();
  const ms = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: Math.round((took.length / ms) * 1_000),
    cpuMs: Number(((user + system) / 1_000 / took.length).toFixed(3)),
    msP50: Number(quantile(sorted(took), 0.5).toFixed(2)),
    msP99: Number(quantile(sorted(took), 0.99).toFixed(2)),
    // The monitor counts its own period of a millisecond.
    loopDelayMsP99: Number((delay.percentile(99) / 1e6 - 1).toFixed(2)),
  };
};

/** The delay of an event loop that does nothing, in milliseconds: the rest is that of the machine. */
const idleDelay = async () => {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await new Promise((resolve) => setTimeout(resolve, 300));
  delay.disable();
  return Number((delay.percentile(99) / 1e6 - 1).toFixed(2));
};

const opened = [];
for (const name of stores) {
  const folder = mkdtempSync(join(tmpdir(), 'steps-'));
  const { store, end } = await openers[name](folder);
  await lastValueFrom(store.calls.driver.list$(), { defaultValue: undefined });
  opened.push({
    name,
    folder,
    store,
    end,
    costs: new Map([1, concurrent].map((count) => [count, []])),
  });
}
// In turn: the machine may have others to work for.
for (let round = 0; round < rounds; round += 1) {
  for (const { folder, store, costs } of opened) {
    for (const [count, found] of costs) {
      const syncs = await syncRate(folder);
      const idleDelayMsP99 = await idleDelay();
      const cost = await measure(store.calls.driver, count);
      found.push({ syncsPerSecond: syncs, ...cost, ratio: cost.perSecond / syncs, idleDelayMsP99 });
    }
  }
}
for (const { name, costs, store, end, folder } of opened) {
  for (const [calls, found] of costs) {
    const medians = Object.keys(found[0]).map((field) => {
      const middle = quantile(sorted(found.map((it) => it[field])), 0.5);
      return [field, Number(middle.toPrecision(3))];
    });
    console.log(JSON.stringify({ store: name, calls, ...Object.fromEntries(medians) }));
  }
  await lastValueFrom(store.close$(), { defaultValue: undefined });
  await end();
  rmSync(folder, { recursive: true });
}
