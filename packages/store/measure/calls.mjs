// CPU time, bytes and operations of lists, saves and prunes of many calls:
// node packages/store/measure/calls.mjs [--store sqlite|files|postgres] [--calls 1000] [--sessions 100]
import console from 'node:console';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { calls$, prune$ } from 'millrace/journal';
import { concat, defer, from, lastValueFrom, mergeMap, take, toArray } from 'rxjs';
import { stores } from './stores.mjs';

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'files' },
    calls: { type: 'string', default: '1000' },
    sessions: { type: 'string', default: '100' },
  },
});
const count = Number(values.calls);
const sessionCount = Number(values.sessions);
const kind = stores[values.store];
if (kind === undefined) throw new Error(`--store is one of ${Object.keys(stores).join(', ')}.`);

const place = await kind.create(mkdtempSync(join(tmpdir(), 'calls-')));

/** What the process has read and written, on Linux. */
const io = () => {
  const text = readFileSync('/proc/self/io', 'utf8');
  const field = (name) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(text)?.[1]);
  return {
    read: field('rchar'),
    written: field('wchar'),
    syscalls: field('syscr') + field('syscw'),
  };
};

const measure = async (what, work, per = 1) => {
  const before = io();
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const after = io();
  const each = (value) => Number((value / per).toPrecision(3));
  console.log(
    JSON.stringify({
      store: values.store,
      calls: count,
      what,
      cpuMs: each((user + system) / 1000),
      ms: each(ms),
      kBRead: each((after.read - before.read) / 1000),
      kBWritten: each((after.written - before.written) / 1000),
      readsAndWrites: each(after.syscalls - before.syscalls),
    }),
  );
};

const last = (source$) => lastValueFrom(source$, { defaultValue: undefined });
const text = (length) => JSON.stringify('x'.repeat(length));
const begins = (callId, sessionId) => ({
  kind: 'step',
  name: `${callId}/call`,
  seq: 0,
  text: JSON.stringify({
    ...{ version: 1, keySeed: '/1', agent: 'a', sessionId, options: {}, given: [] },
    input: [{ id: `${callId}/input/0`, role: 'user', content: [{ type: 'text', text: 'Hello?' }] }],
  }),
});
const step = (callId) => ({ kind: 'step', name: `${callId}/1`, seq: 3, text: text(1_500) });
const reply = (callId) => ({
  ...{ kind: 'step', name: `${callId}/reply`, seq: 4, ends: true },
  text: JSON.stringify({ id: `${callId}/1`, role: 'assistant', content: [], reason: 'answer' }),
});

/** Records a call of three steps. */
const recorded$ = (driver, callId, sessionId) =>
  driver.claim$(callId).pipe(
    mergeMap((claim) =>
      concat(
        claim.append$([begins(callId, sessionId)]),
        claim.append$([step(callId)]),
        claim.append$([reply(callId)]),
        from([undefined]),
      ).pipe(toArray()),
    ),
    take(1),
  );

const store = await place.open();
const { driver } = store.calls;
const idOf = (at) => `call-${String(at).padStart(7, '0')}`;
const sessionOf = (at) => `session-${at % sessionCount}`;
await measure(
  'record a call of three steps',
  () =>
    last(
      from(Array.from({ length: count }, (_, at) => at)).pipe(
        mergeMap((at) => recorded$(driver, idOf(at), sessionOf(at)), 32),
      ),
    ),
  count,
);
await last(store.close$());

let opened;
await measure('open, and list the newest 20', async () => {
  opened = await place.open();
  await last(calls$(opened.calls).pipe(take(20), toArray()));
});
const { calls } = opened;
await measure('list the newest 20', () => last(calls$(calls).pipe(take(20), toArray())));
await measure('list those of a session', () =>
  last(calls$(calls, { sessionId: sessionOf(1) }).pipe(take(20), toArray())),
);
await measure('list the unfinished, of which there are none', () =>
  last(calls$(calls, { isUnfinished: true }).pipe(toArray())),
);
await measure('read a call', () => last(calls.driver.read$(idOf(count >> 1)).pipe(toArray())));
await measure(
  'append a step',
  () =>
    last(
      calls.driver.claim$('one').pipe(
        mergeMap((claim) =>
          concat(
            ...Array.from({ length: 50 }, () => defer(() => claim.append$([step('one')]))),
            from([undefined]),
          ).pipe(toArray()),
        ),
        take(1),
      ),
    ),
  50,
);
await measure('prune all, for each call', () => last(prune$(calls, { olderThanMs: 0 })), count);
await last(opened.close$());
await place.remove();
