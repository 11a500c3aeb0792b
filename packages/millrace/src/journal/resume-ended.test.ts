import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, lastValueFrom, NEVER, of } from 'rxjs';
import {
  createAgent,
  contextKey,
  inProcessMemory,
  interruptOn,
  only,
  tool,
  toolOutput,
} from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { createCallStore, inProcessCalls, journal } from './index.js';
import { sessions } from '../layers/sessions/index.js';
import { emptyTree } from '../values/message-tree.js';

describe('a call that has ended', () => {
  it('S6, S1: is not resumed, also if an interrupt or a limit has ended it', async () => {
    const memory = inProcessMemory();
    let runs = 0;
    const hang = tool({ name: 'hang', description: 'Hangs.', run: () => ((runs += 1), NEVER) });
    const model = scriptedModel([toolCall('hang')], [text('Never said.')]);
    const durable = journal(createCallStore(inProcessCalls()));
    const agent = createAgent({ model, tools: [hang], use: [durable] });
    const session = sessions(agent, { memory }).open('s');
    const events$ = session.stream$('?', { callId: 'c', use: [interruptOn(NEVER)] });
    const done = lastValueFrom(events$);
    session.interrupt('Stop.');
    const last = await done;
    expect(last).toMatchObject({ type: 'postCall', reply: { reason: 'interrupted' } });
    const before = await session.saveState();
    await lastValueFrom(memory('s').replace$?.(emptyTree) ?? of(0), { defaultValue: 0 });
    const reply = await durable.resume(session, 'c');
    expect([reply.reason, runs, model.requests.length]).toEqual(['interrupted', 1, 1]);
    expect(await lastValueFrom(memory('s').load$())).toEqual([]);
    expect((await session.saveState()).usage).toEqual(before.usage);
  });

  it('S6: its session continues if details of a tool are not JSON', async () => {
    const odd = tool({
      name: 'odd',
      description: 'Odd.',
      run: () => toolOutput({ content: 'ok', details: { n: 1n } }),
    });
    const model = scriptedModel([toolCall('odd')], [text('a')], [text('b')]);
    const durable = journal(createCallStore(inProcessCalls()));
    const session = sessions(createAgent({ model, tools: [odd], use: [durable] })).open('s');
    await session.call('1');
    expect((await session.call('2')).reason).toBe('answer');
  });

  it('S6: what a session gives under context keys is given again by its handle', async () => {
    const who = contextKey<string>('who');
    const durable = journal(createCallStore(inProcessCalls()));
    const ask = tool({ name: 'ask', description: 'Asks.', run: (_, { get }) => get(who) });
    const model = scriptedModel([toolCall('ask')], [text('a')]);
    const agent = createAgent({ model, tools: [ask], use: [durable] });
    const session = sessions(agent).open('s', { context: [who.of('ann')] });
    await firstValueFrom(session.stream$('?', { callId: 'c' }));
    expect((await durable.resume(session, 'c')).toolCalls).toMatchObject([{ output: 'ann' }]);
    await expect(durable.resume(agent, 'c')).rejects.toThrow(
      "Resume it with resume$(session, 'c'), where session is sessions(agent, …).open('s')",
    );
  });

  it('S7: a call of an id that is there does not end the one that runs in the session', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const model = scriptedModel([text('a')], NEVER, [text('c')]);
    const session = sessions(createAgent({ model, use: [durable] })).open('s');
    await session.call('1', { callId: 'c' });
    const ends: string[] = [];
    const running = session
      .stream$('2')
      .pipe(only('postCall'))
      .subscribe(() => ends.push('ended'));
    const again = session.call('3', { callId: 'c', onBusy: 'switch' });
    await expect(again).rejects.toMatchObject({ code: 'conflict' });
    expect(ends).toEqual([]);
    running.unsubscribe();
  });

  it('S7: two calls below one cannot have the same id', async () => {
    const sub = createAgent({ name: 'sub', model: scriptedModel([text('1')], [text('2')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: async (_, parent) => (await sub.call('?', { parent, callId: 'look' })).content,
    });
    const model = scriptedModel([toolCall('ask')], [toolCall('ask')], [text('Done.')]);
    const agent = createAgent({
      model,
      tools: [ask],
      use: [journal(createCallStore(inProcessCalls()))],
    });
    const { toolCalls } = await agent.call('?');
    expect(toolCalls.map(({ isError }) => isError)).toEqual([false, true]);
    expect(toolCalls[1]?.output).toContain("already has a call 'look'");
  });
});
