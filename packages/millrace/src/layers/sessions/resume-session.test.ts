import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  defer,
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import { interruptOn } from '../interrupt-on.js';
import { createAgent } from '../../agent.js';
import {
  type CallStoreOptions,
  createCallStore,
  fork$,
  inProcessCalls,
  journal,
} from '../../journal/index.js';
import { inProcessMemory, type MemoryFactory } from '../../memories/in-process-memory.js';
import { textOf } from '../../values/message.js';
import type { ModelChunk } from '../../models/model.js';
import { only } from '../../operators/event-operators.js';
import type { Reply } from '../../values/reply.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { contextKey } from '../../tools/context-key.js';
import { tool } from '../../tools/tool.js';
import { toolGroup } from '../../tools/tool-group.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionStore } from './session-state.js';
import { keepSessions } from './keep-sessions.js';
import { sessions } from './index.js';
import { lineOf } from '../../values/message-tree.js';

const broken = throwError(() => new Error('broken'));

const said = (reply: Reply | undefined): string | undefined => reply && textOf(reply);

/** Keeps so many messages, and says what it drops. */
const forgetful =
  (most: number): MemoryFactory =>
  (id) => {
    const memory = inProcessMemory()(id);
    return {
      ...memory,
      append$: (appended) =>
        memory.append$(appended).pipe(
          concatMap(() => memory.load$()),
          concatMap((all) => {
            const removed = all.slice(0, -most).map((message) => message.id);
            return defer(() => memory.replace$?.(lineOf(all.slice(-most))) ?? EMPTY).pipe(
              map(() => ({ appended, removed })),
            );
          }),
        ),
    };
  };

const spent = (inputTokens: number): ModelChunk => ({ type: 'usage', usage: { inputTokens } });

/** What outlasts a process, and processes that use it. */
const place = (options?: CallStoreOptions) => {
  let now = 0;
  const [driver, store] = [inProcessCalls(() => (now += 1)), inProcessSessions()];
  const calls = createCallStore(driver, options);
  const chat = async (answers: readonly ScriptedAnswer[], sessions: SessionStore = store) => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
    const model = scriptedModel(...answers);
    const agent = createAgent({ model, tools: [look], use: [journal(calls)] });
    return keepSessions(agent, sessions, { journal: journal(calls) }).open('s');
  };
  return { calls, store, chat, full: { ...store, save$: () => broken, append$: () => broken } };
};

const idsIn = async (store: SessionStore) => {
  const stored = await lastValueFrom(store.load$('s'));
  const { messages } = stored?.state as { messages: readonly { id: string }[] };
  return messages.map(({ id }) => id);
};

describe('S6: a kept session that continues', () => {
  it('with nothing, if nothing is missing', async () => {
    const { chat, store } = place();
    const session = await chat([[text('one')]]);
    expect(await session.resume()).toBeUndefined();
    await session.call('a', { callId: 'c' });
    const again = await chat([]);
    expect(await again.resume()).toBeUndefined();
    // That one is asked for all the same.
    const reply = await again.resume('c');
    expect([said(reply), again.version]).toEqual(['one', 1]);
    expect(await idsIn(store)).toEqual(['c/input/0', 'c/1']);
  });

  it.each([[undefined], [{ events: () => false }]])(
    'with a call that had ended, and was not saved, for any kept events',
    async (options) => {
      const { chat, store, full } = place(options);
      const lost = await chat([[text('one')]], full);
      await expect(lost.call('a', { callId: 'c' })).rejects.toMatchObject({ code: 'store' });
      const again = await chat([]);
      const events = await lastValueFrom(again.resumeStream$().pipe(only('postCall'), toArray()));
      expect(events.map(({ reply }) => textOf(reply))).toEqual(['one']);
      expect(await idsIn(store)).toEqual(['c/input/0', 'c/1']);
      expect(await again.resume()).toBeUndefined();
    },
  );

  it('with one that has failed, been saved, been continued, and not been saved', async () => {
    const { chat, store, full } = place();
    const first = await chat([[toolCall('look')], broken]);
    await expect(first.call('a', { callId: 'c' })).rejects.toThrow('broken');
    // It is over: nobody goes on with it who does not ask for it.
    expect(await (await chat([])).resume()).toBeUndefined();
    const second = await chat([[text('seen')]], { ...full, load$: store.load$ });
    await expect(second.resume('c')).rejects.toMatchObject({ code: 'store' });
    const third = await chat([]);
    expect(said(await third.resume())).toBe('seen');
    expect(await idsIn(store)).toEqual(['c/input/0', 'c/1', 'c/1/results', 'c/2']);
  });

  it('with what a call has left that failed, and was not saved', async () => {
    const { chat, store, full } = place();
    const first = await chat([[toolCall('look')], broken], full);
    await expect(first.call('a', { callId: 'c' })).rejects.toThrow('broken');
    const second = await chat([]);
    expect(await second.resume()).toBeUndefined();
    expect(await idsIn(store)).toEqual(['c/input/0', 'c/1', 'c/1/results']);
  });

  it('with the calls that waited, too, in their order', async () => {
    const { chat, store } = place();
    const first = await chat([() => NEVER]);
    const running = first.call$('a', { callId: 'a' }).subscribe({ error: () => undefined });
    const waiting = first
      .call$('b', { callId: 'b', onBusy: 'queue' })
      .subscribe({ error: () => undefined });
    waiting.unsubscribe();
    running.unsubscribe();
    const second = await chat([[text('one')], [text('two')]]);
    const replies = await lastValueFrom(second.resume$().pipe(toArray()));
    expect(replies.map(textOf)).toEqual(['one', 'two']);
    expect(await idsIn(store)).toEqual(['a/input/0', 'a/1', 'b/input/0', 'b/1']);
  });

  it('without what a call below has said in a session of the same id', async () => {
    const calls = createCallStore(inProcessCalls());
    const web = toolGroup({ name: 'web', description: 'The web.', tools: [] });
    const boss = () => {
      const helper = createAgent({
        name: 'helper',
        model: scriptedModel([toolCall('manage_tools', { activate: ['web'] })], [text('hm')]),
        tools: [web],
      });
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_input, parent) => sessions(helper).open('s').call$('secret?', { parent }),
      });
      const model = scriptedModel([toolCall('ask')], [text('one')]);
      return createAgent({ model, tools: [ask, web], use: [journal(calls)] });
    };
    const session = sessions(boss()).open('s');
    await session.call('a', { callId: 'c' });
    const again = await keepSessions(boss(), inProcessSessions(), { journal: journal(calls) }).open(
      's',
    );
    expect(said(await again.resume())).toBe('one');
    expect(await again.saveState()).toEqual(await session.saveState());
  });

  it('with an older one, whose usage is counted once', async () => {
    const { chat } = place();
    const first = await chat([[toolCall('look'), spent(100)], broken, [text('b'), spent(10)]]);
    await expect(first.call('a', { callId: 'a' })).rejects.toThrow('broken');
    await first.call('b', { callId: 'b' });
    const second = await chat([[text('a'), spent(1_000)]]);
    await second.resume('a');
    expect((await second.saveState()).usage.inputTokens).toBe(1_110);
    expect(await second.saveState()).toMatchObject({
      lastCall: { callId: 'a', hasEnded: true, usageBefore: { inputTokens: 10 } },
      earlierCalls: [{ callId: 'b', hasEnded: true, usage: { inputTokens: 10 } }],
    });
  });

  it('without what is saved already and dropped, if it is asked for again', async () => {
    const { calls, store } = place();
    const lastTwo = forgetful(2);
    const model = scriptedModel(...[1, 10, 100].map((tokens) => [text('ok'), spent(tokens)]));
    const agent = createAgent({ model, use: [journal(calls)] });
    const session = await keepSessions(agent, store, {
      journal: journal(calls),
      memory: lastTwo,
    }).open('s');
    for (const callId of ['a', 'b', 'c']) await session.call('?', { callId });
    const before = await session.saveState();
    expect(before.messages.map(({ id }) => id)).toEqual(['c/input/0', 'c/1']);
    for (const callId of ['a', 'b', 'a']) expect(said(await session.resume(callId))).toBe('ok');
    expect(await session.saveState()).toEqual(before);
  });

  it('takes of an older one what it said and cost, and stays as others have left it', async () => {
    const { calls, store } = place();
    const web = toolGroup({ name: 'web', description: 'The web.', tools: [] });
    const agentOf = (...answers: readonly ScriptedAnswer[]) =>
      createAgent({ model: scriptedModel(...answers), tools: [web], use: [journal(calls)] });
    const activate = toolCall('manage_tools', { activate: ['web'] });
    const lost = sessions(agentOf([activate], [text('one'), spent(1)])).open('s');
    await lost.call('?', { callId: 'q' });
    // An id that begins with that of the other one.
    const agent = agentOf(() => NEVER);
    const session = await keepSessions(agent, store, { journal: journal(calls) }).open('s');
    const stop$ = new Subject<string>();
    const stopped = session.call('?', { callId: 'q/2', use: [interruptOn(stop$)] });
    stop$.next('Stop.');
    await stopped;
    const before = await session.saveState();
    for (const _again of [1, 2]) {
      expect(said(await session.resume('q'))).toBe('one');
      const { messages, branches = [], ...rest } = await session.saveState();
      expect(messages).toEqual(before.messages);
      // It began where the other one did.
      expect(branches.map(({ after, message }) => [after, message.id])).toEqual([
        ...[[null, 'q/input/0'] as const, ['q/input/0', 'q/1'] as const],
        ...[['q/1', 'q/1/results'] as const, ['q/1/results', 'q/2'] as const],
      ]);
      expect(rest).toMatchObject({
        groups: { web: false },
        interrupted: true,
        usage: { inputTokens: 1 },
        lastCall: { callId: 'q/2', usageBefore: { inputTokens: 1 } },
        earlierCalls: [{ callId: 'q', hasEnded: true, usage: { inputTokens: 1 } }],
      });
    }
    expect(session.version).toBe(2);
  });

  it('with one that was aborted, and with none that was interrupted', async () => {
    for (const how of ['abort', 'interrupt'] as const) {
      const { chat } = place();
      const session = await chat([() => NEVER]);
      const controller = new AbortController();
      const stopped = session.call('?', { callId: 'a', signal: controller.signal });
      if (how === 'abort') controller.abort();
      else session.interrupt();
      await stopped.catch(() => undefined);
      const reply = await (await chat([[text('one')]])).resume();
      expect(said(reply)).toBe(how === 'abort' ? 'one' : undefined);
    }
  });

  it('leaves what was left before a call that it knows', async () => {
    const { chat } = place();
    const first = await chat([() => NEVER, [text('two')]]);
    first
      .call$('a', { callId: 'a' })
      .subscribe({ error: () => undefined })
      .unsubscribe();
    await first.call('b', { callId: 'b' });
    expect(await (await chat([])).resume()).toBeUndefined();
  });

  it('S7: with a fork that was made for it', async () => {
    const { chat, calls } = place();
    const first = await chat([[toolCall('look')], [text('one')]]);
    await first.call('a', { callId: 'c' });
    await lastValueFrom(fork$(calls, 'c', { at: '2', callId: 'f', sessionId: 'new' }));
    const agent = createAgent({ model: scriptedModel([text('other')]), use: [journal(calls)] });
    const session = await keepSessions(agent, inProcessSessions(), {
      journal: journal(calls),
    }).open('new');
    expect(said(await session.resume())).toBe('other');
    expect((await session.saveState()).messages).toHaveLength(4);
  });

  it('with the context that it was opened with', async () => {
    const who = contextKey<string>('who');
    const { calls, store } = place();
    const model = scriptedModel(() => NEVER, [text('one')]);
    const sessions = keepSessions(createAgent({ model, use: [journal(calls)] }), store, {
      journal: journal(calls),
    });
    const session = await sessions.open('s', { context: [who.of('ann')] });
    session
      .call$('a')
      .subscribe({ error: () => undefined })
      .unsubscribe();
    expect(said(await session.resume())).toBe('one');
  });

  it('I10: says what is wrong', async () => {
    const { calls, store, chat } = place();
    const agent = createAgent({ model: scriptedModel([text('one')]), use: [journal(calls)] });
    await agent.call('?', { callId: 'bare' });
    const session = await chat([]);
    await expect(session.resume('bare')).rejects.toThrow(
      "to the agent 'agent', without a session,",
    );
    await expect(session.resume('none')).rejects.toMatchObject({ code: 'invalidResume' });
    await expect(session.resume('')).rejects.toMatchObject({ code: 'config' });
    const without = await keepSessions(agent, store).open('t');
    await expect(without.resume()).rejects.toThrow('keepSessions(agent, store, { journal })');
    const wrong = { journal: {} as never };
    expect(() => keepSessions(agent, store, wrong)).toThrow(
      "'journal' must be a journal on a call store",
    );
    await session.close();
    await expect(session.resume()).rejects.toMatchObject({ code: 'invalidState' });
  });
});
