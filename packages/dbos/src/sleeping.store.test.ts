import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createAgent, type Model } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import { openPostgres } from '@millrace/store/postgres';
import {
  filter,
  firstValueFrom,
  lastValueFrom,
  merge,
  of,
  Subscription,
  take,
  takeUntil,
  timer,
  toArray,
} from 'rxjs';
import { schedule, sleepLayer, wake$ } from '@millrace/time';
import { openDbos } from './index.js';

jest.setTimeout(240_000);

let server: TestServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

const model: Model = {
  name: 'sleeper',
  stream$: ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? of(text('I am back.'), finish())
      : of(toolCall('sleep', { seconds: 1 }), finish()),
};

it('S6: on Postgres, one of three machines continues a sleep, and makes each call of a schedule', async () => {
  const machines = [1, 2, 3].map(() => {
    const store = openPostgres(server.url, { schema: 'machines' });
    const agent = createAgent({
      name: 'helper',
      model,
      use: [sleepLayer(store.calls, { holdMs: 0 })],
    });
    return { store, users: keepSessions(agent, store.sessions, { journal: journal(store.calls) }) };
  });
  const [first] = machines;
  const ada = await first?.users.open('ada');
  expect((await ada?.call('Come back.', { callId: 'c1' }))?.reason).toBe('suspended');
  const options = { pollMs: 500 };
  const made: string[] = [];
  const schedules = machines.map(({ store }) =>
    schedule(({ callId }) => of(made.push(callId)), '* * * * * *', 'Tick.', {
      ...{ ...options, name: 'tick', store: store.calls },
    }),
  );
  const wakes = machines.map(({ store, users }) => wake$(store.calls, users, options));
  const until$ = timer(6_000);
  const [woken] = await Promise.all([
    lastValueFrom(
      merge(...wakes).pipe(
        filter(({ type }) => type === 'woken'),
        takeUntil(until$),
        toArray(),
      ),
    ),
    lastValueFrom(merge(...schedules).pipe(takeUntil(until$), toArray())),
  ]);
  expect(woken).toMatchObject([{ sleep: { sessionId: 'ada' }, value: { text: 'I am back.' } }]);
  expect(new Set(made).size).toBe(made.length);
  expect(made.length).toBeGreaterThan(1);
  for (const { store } of machines)
    await lastValueFrom(store.close$(), { defaultValue: undefined });
});

it('S6: on DBOS, a sleeping call is continued by the engine', async () => {
  const engine = openDbos(server.url);
  const { calls } = engine.store;
  const agent = createAgent({ name: 'helper', model, use: [sleepLayer(calls, { holdMs: 0 })] });
  const running = new Subscription();
  const started$ = engine.work$([agent], { pollMs: 20 });
  running.add(started$.subscribe({ error: () => undefined }));
  const callId = await firstValueFrom(
    engine.start$(agent, 'Come back.', { sessionId: 'ada', callId: 'order' }),
  );
  expect((await firstValueFrom(engine.reply$(callId))).reason).toBe('suspended');
  const notices$ = wake$(calls, (it) => engine.answer$(it.callId, it.results), { pollMs: 200 });
  const [notice] = await lastValueFrom(
    notices$.pipe(
      filter(({ type }) => type === 'woken'),
      take(1),
      toArray(),
    ),
  );
  expect(notice).toMatchObject({ type: 'woken', value: 'order~2' });
  expect((await firstValueFrom(engine.reply$('order~2'))).text).toBe('I am back.');
  running.unsubscribe();
  await lastValueFrom(engine.close$(), { defaultValue: undefined });
});
