import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Agent, createAgent, MillraceError, type ModelChunk, tool } from 'millrace';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { inProcessSessions, keepSessions, type SessionStore } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { asyncScheduler, finalize, NEVER, throwError } from 'rxjs';
import { chatServer } from './index.js';

/** The time until the server looks again passes at once. */
beforeEach(() => {
  const schedule = asyncScheduler.schedule.bind(asyncScheduler);
  jest
    .spyOn(asyncScheduler, 'schedule')
    .mockImplementation((work, delay, state) =>
      schedule(work, delay === 15_000 ? 0 : delay, state),
    );
});
afterEach(() => {
  jest.restoreAllMocks();
});

const agentOf = (run: () => unknown, answer: ModelChunk = text('Done.')): Agent =>
  createAgent({
    name: 'helper',
    model: scriptedModel([answer]),
    tools: [tool({ name: 'wait', description: 'Waits.', idempotent: true, run })],
  });

const storeOf = () => ({ driver: inProcessCalls(), sessions: inProcessSessions() });
type Store = ReturnType<typeof storeOf>;

/** Leaves a call in its tool, as a process that ends does. */
const leave = async ({ driver, sessions }: Store): Promise<void> => {
  const agent = agentOf(() => NEVER, toolCall('wait', {}, 'w'));
  const kept = keepSessions(agent, sessions, { journal: journal(createCallStore(driver)) });
  const session = await kept.open('a');
  await new Promise<void>((resolve) => {
    const call = session.stream$('Do it.').subscribe(({ type }) => {
      if (type !== 'preActing') return;
      setTimeout(() => {
        call.unsubscribe();
        resolve();
      });
    });
  });
};

const down = () => throwError(() => new MillraceError('store', 'The database is down.'));
const failing = <Given extends readonly unknown[], T>(
  times: number,
  work: (...given: Given) => T,
): ((...given: Given) => T | ReturnType<typeof down>) => {
  let failures = 0;
  return (...given) => (failures++ < times ? down() : work(...given));
};

type Change = (store: Store) => {
  readonly driver?: Partial<CallStoreDriver>;
  readonly sessions?: Partial<SessionStore>;
};

const kinds: Readonly<Record<string, Change>> = {
  'the calls cannot be listed': ({ driver }) => ({ driver: { list$: failing(1, driver.list$) } }),
  'the calls cannot be listed three times': ({ driver }) => ({
    driver: { list$: failing(3, driver.list$) },
  }),
  'the session cannot be loaded': ({ sessions }) => ({
    sessions: { load$: failing(1, sessions.load$) },
  }),
  'the calls cannot be claimed': ({ driver }) => ({
    driver: { claim$: failing(2, driver.claim$) },
  }),
};

describe('a call that an earlier process left unfinished', () => {
  it.each(Object.entries(kinds))('is continued, though %s at first', async (_, change) => {
    const store = storeOf();
    await leave(store);
    const changed = change(store);
    const errors: string[] = [];
    const answered = new Promise<void>((resolve) => {
      const server = chatServer(
        agentOf(() => {
          resolve();
          return 'Ran.';
        }),
        {
          store: {
            calls: createCallStore({ ...store.driver, ...changed.driver }),
            sessions: { ...store.sessions, ...changed.sessions },
          },
          onError: ({ code }) => errors.push(code),
        },
      );
      ends.push(() => server.close({ timeoutMs: 0 }));
    });
    await answered;
    expect(errors.length).toBeGreaterThan(0);
    expect(new Set(errors)).toEqual(new Set(['store']));
  });

  it('keeps the title of its question', async () => {
    const store = storeOf();
    await leave(store);
    const { driver, sessions } = store;
    const saved = await new Promise((resolve) => {
      const save$: SessionStore['save$'] = (...given) => {
        resolve(given);
        return sessions.save$(...given);
      };
      const server = chatServer(
        agentOf(() => 'Ran.'),
        { store: { calls: createCallStore(driver), sessions: { ...sessions, save$ } } },
      );
      ends.push(() => server.close({ timeoutMs: 0 }));
    });
    expect(saved).toContainEqual(expect.objectContaining({ title: 'Do it.' }));
  });

  it('I21: is looked for again outside of the request whose call has failed', async () => {
    const user = new AsyncLocalStorage<string>();
    const store = storeOf();
    const seen: unknown[] = [];
    await new Promise<void>((resolve) => {
      const calls = createCallStore({
        ...store.driver,
        list$: (query) => {
          if (query?.isUnfinished === true) seen.push(user.getStore());
          if (seen.length === 2) resolve();
          return store.driver.list$(query);
        },
        claim$: failing(1, store.driver.claim$),
      });
      const server = chatServer(
        agentOf(() => 'Ran.'),
        { store: { calls, sessions: store.sessions }, onError: () => undefined },
      );
      ends.push(() => server.close({ timeoutMs: 0 }));
      const messages = [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'Hello?' }] }];
      const request = new Request('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'b', messages }),
      });
      void user.run('ann', async () => (await server.respond(request)).text());
    });
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is looked for again without a subscription in each other one', async () => {
    const depthAfter = async (rounds: number): Promise<number> => {
      const store = storeOf();
      let depth = 0;
      let round = 0;
      await new Promise<void>((resolve) => {
        const list$: CallStoreDriver['list$'] = () => {
          round += 1;
          if (round < rounds) return down();
          setTimeout(resolve);
          return NEVER.pipe(finalize(() => (depth = stackDepth())));
        };
        const server = chatServer(
          agentOf(() => 'Ran.'),
          {
            store: {
              calls: createCallStore({ ...store.driver, list$ }),
              sessions: store.sessions,
            },
            onError: () => undefined,
          },
        );
        ends.push(() => server.close({ timeoutMs: 0 }));
      });
      await closed();
      return depth;
    };
    const few = await depthAfter(10);
    expect(few).toBeGreaterThan(1);
    expect(await depthAfter(60)).toBe(few);
  });
});

const ends: (() => Promise<unknown>)[] = [];
const closed = async (): Promise<void> => {
  await Promise.all(ends.splice(0).map((end) => end()));
};
afterEach(closed);

const stackDepth = (): number => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Infinity;
  const depth = new Error().stack?.split('\n').length ?? 0;
  Error.stackTraceLimit = limit;
  return depth;
};
