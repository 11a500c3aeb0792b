import { describe, expect, it } from '@jest/globals';
import {
  asapScheduler,
  concat,
  defer,
  lastValueFrom,
  map,
  NEVER,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import type { CallOptions } from '../../call/call-options.js';
import {
  type CallStoreDriver,
  calls$,
  createCallStore,
  inProcessCalls,
  journal,
} from '../../journal/index.js';
import type { ModelChunk } from '../../models/model.js';
import { finish, type ScriptedAnswer, scriptedModel, text } from '../../testing/index.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionStore } from './session-state.js';
import { keepSessions } from './keep-sessions.js';
import type { SessionCallOptions } from './sessions.js';

const dead$ = throwError(() => new Error('dead'));

/** A process: what it would write when it is dead is lost. */
const processOf = (driver: CallStoreDriver, store: SessionStore) => {
  let isDead = false;
  const calls = createCallStore({
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (batch) => defer(() => (isDead ? dead$ : append$(batch))),
        })),
      ),
  });
  const sessions: SessionStore = {
    ...store,
    save$: (...given) => defer(() => (isDead ? dead$ : store.save$(...given))),
    append$: (...given) => defer(() => (isDead ? dead$ : (store.append$?.(...given) ?? dead$))),
  };
  const chat = async (...answers: readonly ScriptedAnswer[]) => {
    const durable = journal(calls);
    const agent = createAgent({ model: scriptedModel(...answers), use: [durable] });
    const session = await keepSessions(agent, sessions, { journal: durable }).open('s');
    const left: { unsubscribe(): void }[] = [];
    return {
      durable,
      session,
      ask: (callId: string, options: CallOptions & SessionCallOptions = { onBusy: 'queue' }) => {
        const call = session.call$(`${callId}?`, { callId, ...options });
        const asked = call.subscribe({ error: () => undefined });
        left.push(asked);
        return asked;
      },
      end: () => {
        isDead = true;
        left.reverse().forEach((asked) => asked.unsubscribe());
      },
    };
  };
  return { chat };
};

/** Each time a later one. */
const ticking = () => {
  let now = 0;
  return () => (now += 1);
};

/** What outlasts processes. */
const place = (now = ticking()) => {
  const [driver, store] = [inProcessCalls(now), inProcessSessions()];
  const chat = (...answers: readonly ScriptedAnswer[]) => processOf(driver, store).chat(...answers);
  const resumed = async () => {
    const { session } = await chat(...Array.from({ length: 9 }, () => [text('ok')]));
    const replies = await lastValueFrom(session.resume$().pipe(toArray()));
    return replies.map(({ id }) => id.split('/')[0]);
  };
  return { driver, store, chat, resumed };
};

/** An answer that comes when it is let. */
const later = () => {
  const answer$ = new Subject<ModelChunk>();
  const come = (): void => {
    answer$.next(text('late'));
    answer$.next(finish());
    answer$.complete();
  };
  return { answer$: defer(() => answer$), come };
};

describe('S6: the calls that a session lacks', () => {
  it('are also those that waited while one ran that is saved', async () => {
    const { chat, resumed } = place();
    const { answer$, come } = later();
    const { ask, end } = await chat(answer$, () => NEVER);
    for (const callId of ['a', 'b', 'c']) {
      ask(callId);
    }
    come();
    end();
    expect(await resumed()).toEqual(['b', 'c']);
    expect(await resumed()).toEqual([]);
  });

  it('S8: are those that were drained, whether they ran or waited', async () => {
    const { chat, resumed } = place();
    const { durable, ask } = await chat(
      () => NEVER,
      () => NEVER,
    );
    for (const callId of ['b', 'c']) {
      ask(callId);
    }
    await durable.drain({ timeoutMs: 0, scheduler: asapScheduler });
    expect(await resumed()).toEqual(['b', 'c']);
    expect(await resumed()).toEqual([]);
  });

  it('do not include those that were interrupted while they waited', async () => {
    const { chat, resumed } = place();
    const { session, ask, end } = await chat(() => NEVER);
    ['a', 'b'].forEach((callId) => ask(callId));
    session.queue.clear('Never mind.');
    end();
    expect(await resumed()).toEqual(['a']);
    const { session: again } = await chat();
    expect((await again.saveState()).interrupted).toBe(false);
    // Whoever asks for it gets its reply, and no more.
    expect((await again.resume('b'))?.reason).toBe('interrupted');
    expect(await again.saveState()).toMatchObject({
      interrupted: false,
      lastCall: { callId: 'a' },
    });
    expect(await resumed()).toEqual([]);
  });

  it.each([0, 1])('come in their order if they were made at the same time (%i)', async (later) => {
    let now = 0;
    const { chat, resumed } = place(() => now);
    const said$ = new Subject<ModelChunk>();
    const { ask, end } = await chat(defer(() => said$));
    ['a', 'b', 'c'].forEach((callId) => ask(callId));
    now = later;
    said$.next(text('Hm'));
    end();
    expect(await resumed()).toEqual(['a', 'b', 'c']);
  });

  it('are found in their order, also by a clock that was set back', async () => {
    let now = 9_000;
    const { chat, resumed } = place(() => now);
    const { session, ask, end } = await chat([text('one')], () => NEVER);
    await session.call('?', { callId: 'a' });
    for (const callId of ['b', 'c']) {
      now -= 1_000;
      ask(callId);
    }
    end();
    expect(await resumed()).toEqual(['b', 'c']);
    expect(await resumed()).toEqual([]);
  });

  it('come in their order, also if one had ended by then', async () => {
    let now = 0;
    const { driver, store, resumed } = place(() => now);
    const { answer$, come } = later();
    const full = processOf(driver, { ...store, save$: () => dead$, append$: () => dead$ });
    const { ask, end } = await full.chat(answer$, () => concat([text('Hm')], NEVER));
    ['a', 'b', 'c'].forEach((callId) => ask(callId));
    now = 1;
    come();
    end();
    expect(await resumed()).toEqual(['a', 'b', 'c']);
  });

  it('are also one whose journal is not at its end though it is saved', async () => {
    const { driver, store, resumed } = place();
    const claim$: CallStoreDriver['claim$'] = (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (batch) => append$(batch.filter(({ name }) => name !== 'postCall')),
        })),
      );
    const cut = processOf({ ...driver, claim$ }, store);
    const { session } = await cut.chat([text('one')]);
    await session.call('?', { callId: 'a' });
    const before = await session.saveState();
    expect(await resumed()).toEqual(['a']);
    expect(await resumed()).toEqual([]);
    const calls = calls$(createCallStore(driver));
    expect((await lastValueFrom(calls)).status).toBe('ended');
    expect((await lastValueFrom(store.load$('s')))?.state).toEqual(before);
  });
});
