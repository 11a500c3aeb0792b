import { describe, expect, it } from '@jest/globals';
import { concat, firstValueFrom, lastValueFrom, NEVER, of, Subject, throwError } from 'rxjs';
import { createAgent } from '../../agent.js';
import { MillraceError } from '../../values/errors.js';
import { inputAndAnswer, summarisingMemory, windowMemory } from '../../memories/index.js';
import { inProcessMemory } from '../../memories/in-process-memory.js';
import type { Memory } from '../../values/memory.js';
import { type Message, textBlock, type ToolResultBlock } from '../../values/message.js';
import { jsonSchema } from '../../schema/index.js';
import { finish, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { requireApproval, approval } from '../approval.js';
import { toolGroup } from '../../tools/tool-group.js';
import { sampleAgent, sampleStates } from './sample-sessions.test-support.js';
import { sessions, type SessionState } from './index.js';

const user = (id: string, said = `I am ${id}.`): Message => ({
  id,
  role: 'user',
  content: [textBlock(said)],
});

const stateOf = (name: keyof typeof sampleStates): Promise<SessionState> =>
  sampleStates[name]?.() ?? Promise.reject(new Error(name));

describe('S4: the state of a session', () => {
  it('continues in another process as if it were the same one', async () => {
    const first = sessions(sampleAgent([[toolCall('add', { a: 1, b: 2 })], [text('3')]])).open('s');
    await first.call('Add.');
    const model = scriptedModel([text('It was 3.')]);
    const second = sessions(sampleAgent([], { model })).open('s');
    await second.loadState(JSON.parse(JSON.stringify(await first.saveState())));
    await second.call('What was it?');
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
  });

  it('X19: is frozen, and no part of what it was made of', async () => {
    const session = sessions(sampleAgent([[text('Hello.')]])).open('s');
    await session.call('Hi');
    const state = await session.saveState();
    expect([state, state.messages, state.messages[0]?.content].every(Object.isFrozen)).toBe(true);
    expect(state.messages[0]).not.toBe((await firstValueFrom(session.memory.load$()))[0]);
    const own = structuredClone(state) as { groups: Record<string, boolean> };
    const other = sessions(sampleAgent()).open('s');
    await other.loadState(own);
    own.groups['web'] = true;
    expect(await other.saveState()).toEqual(state);
  });

  it('counts what failed calls have cost', async () => {
    const spent = { inputTokens: 7, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const usage = { type: 'usage', usage: spent } as const;
    const broken = concat(
      of(usage),
      throwError(() => new MillraceError('auth', 'No.', { usage: spent })),
    );
    const session = sessions(sampleAgent([[text('a'), usage], broken])).open('s');
    await session.call('a');
    await session.call('b').catch(() => undefined);
    expect((await session.saveState()).usage).toMatchObject({ inputTokens: 14, outputTokens: 2 });
  });

  it('counts what the calls below have cost once, and asks for approvals there too', async () => {
    const usage = { type: 'usage', usage: { inputTokens: 5 } } as const;
    const inner = sampleAgent(
      [
        [toolCall('pay', {}, 'p'), usage],
        [text('paid'), usage],
      ],
      { name: 'inner' },
    );
    const decide$ = new Subject<boolean>();
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, context) =>
        inner.call$('Pay.', { parent: context, use: [approval(() => decide$)] }),
    });
    const model = scriptedModel([toolCall('ask', {}, 'a'), usage], [text('done'), usage]);
    const session = sessions(createAgent({ model, tools: [ask] })).open('s');
    const reply = session.call('?', { callId: 'c' });
    expect((await session.saveState()).approvals).toMatchObject([
      { callId: 'c/a', toolCall: { name: 'pay' } },
    ]);
    session.interrupt();
    expect((await reply).reason).toBe('interrupted');
    expect((await session.saveState()).usage.inputTokens).toBe(10);
  });

  it('says what waits for approval, until it is decided or given up', async () => {
    const decide$ = new Subject<boolean>();
    const uses = [toolCall('act', { n: 1 }, 'one'), toolCall('act', { n: 2 }, 'two')];
    const act = requireApproval(
      tool({
        name: 'act',
        description: 'Acts.',
        input: jsonSchema({ type: 'object', properties: { n: { type: 'number' } } }),
        run: () => 'acted',
      }),
      ({ toolCallId }) => (toolCallId === 'one' ? decide$ : NEVER),
      { parallel: true },
    );
    const model = scriptedModel(uses, uses);
    const session = sessions(createAgent({ model, tools: [act] })).open('s');
    const waiting = async () =>
      (await session.saveState()).approvals.map(({ callId, toolCall: { id } }) => [callId, id]);
    const reply = session.call('?', { callId: 'c' });
    expect(await waiting()).toEqual([
      ['c', 'one'],
      ['c', 'two'],
    ]);
    decide$.next(true);
    expect(await waiting()).toEqual([['c', 'two']]);
    session.interrupt();
    await reply;
    expect(await waiting()).toEqual([]);
    const left = session.call$('?', { callId: 'd' }).subscribe({ error: () => undefined });
    expect(await waiting()).toHaveLength(2);
    left.unsubscribe();
    expect(await waiting()).toEqual([]);
  });

  it('keeps what waits for approval in a loaded state until the next call begins', async () => {
    const session = sessions(sampleAgent([[text('Hm.')]])).open('s');
    await session.loadState(await stateOf('approvals'));
    expect((await session.saveState()).approvals).toHaveLength(2);
    await session.call('Go on.');
    expect((await session.saveState()).approvals).toEqual([]);
  });

  it('says whether the last call was interrupted', async () => {
    const session = sessions(
      sampleAgent([NEVER, throwError(() => new Error('no')), NEVER, [text('b')]]),
    ).open('s');
    const interrupted = async () => (await session.saveState()).interrupted;
    const cut = async () => {
      const reply = session.call('a');
      session.interrupt();
      await reply;
    };
    await cut();
    expect(await interrupted()).toBe(true);
    await session.call('b').catch(() => undefined);
    expect(await interrupted()).toBe(false);
    await cut();
    expect(await interrupted()).toBe(true);
    await session.call('c');
    expect(await interrupted()).toBe(false);
  });

  it('is not changed by a call that was interrupted while it waited', async () => {
    const session = sessions(sampleAgent([[text('a')]])).open('s');
    const answer$ = new Subject<string>();
    const first = sessions(sampleAgent([], { model: { name: 'slow', stream$: () => NEVER } })).open(
      's',
    );
    const running = first.call$('a').subscribe();
    const queued = first.call('b', { onBusy: 'queue', callId: 'b' });
    first.interrupt('no', 'b');
    await queued;
    expect((await first.saveState()).interrupted).toBe(false);
    running.unsubscribe();
    answer$.complete();
    expect((await session.saveState()).messages).toEqual([]);
  });

  it('T10: has the groups, and passes over those that the agent does not have', async () => {
    const search = tool({ name: 'search', description: 'Searches.', run: () => '' });
    const group = (name: string, active = false) =>
      toolGroup({
        name,
        description: name,
        tools: [{ ...search, name: `${name}_search` }],
        active,
      });
    const agent = createAgent({
      model: scriptedModel(),
      tools: [group('a'), group('b', true), group('c')],
    });
    const session = sessions(agent).open('s');
    session.toolkit.add(group('own'));
    session.toolkit.activate('c', 'own');
    session.toolkit.deactivate('b');
    const state = await session.saveState();
    expect(state.groups).toEqual({ a: false, b: false, c: true, own: true });
    await session.loadState({ ...state, groups: { a: true, gone: true } });
    // What it does not name is as it was in the beginning, and what was added stays.
    expect((await session.saveState()).groups).toEqual({ a: true, b: true, c: false, own: true });
    expect(session.toolkit.names).toEqual(['a_search', 'b_search', 'own_search', 'manage_tools']);
    expect((await sessions(agent).open('t').saveState()).groups).toEqual({
      a: false,
      b: true,
      c: false,
    });
  });

  it('leaves out what JSON cannot hold, and what reaches a prototype', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['it'] = cycle;
    const hostile: unknown = JSON.parse('{"__proto__":{"polluted":1},"a":1}');
    const result = (id: string, details: unknown): ToolResultBlock => ({
      type: 'tool_result',
      toolCallId: id,
      content: [],
      isError: false,
      details,
    });
    const details = [cycle, () => 1, hostile, new Date(0), 12n];
    const memory = inProcessMemory();
    const session = sessions(sampleAgent([]), { memory }).open('s');
    const uses = details.map((_, index) => ({
      type: 'tool_call' as const,
      id: `u${index}`,
      name: '',
      input: hostile as Record<string, unknown>,
    }));
    await lastValueFrom(
      memory('s').append$([
        { id: 'a', role: 'assistant', content: uses },
        { id: 't', role: 'tool', content: details.map((it, index) => result(`u${index}`, it)) },
      ]),
    );
    const state = await session.saveState();
    const other = sessions(sampleAgent()).open('s');
    await other.loadState(JSON.parse(JSON.stringify(state)));
    expect(await other.saveState()).toEqual(state);
    const [asked, answered] = state.messages;
    expect(JSON.stringify(asked?.content[0])).toBe(
      '{"type":"tool_call","id":"u0","name":"","input":{"a":1}}',
    );
    expect(answered?.content.map((block) => 'details' in block && block.details)).toEqual([
      false,
      false,
      { a: 1 },
      '1970-01-01T00:00:00.000Z',
      false,
    ]);
    // S11: a tool call without a result is saved as it is.
    await lastValueFrom(memory('s').append$([{ id: 'b', role: 'assistant', content: uses }]));
    expect((await session.saveState()).messages).toHaveLength(3);
  });
});

describe('S4: loading a state', () => {
  const memoryOf = (changes: Partial<Memory>) => {
    const memory = inProcessMemory();
    return (id: string): Memory => ({ ...memory(id), ...changes });
  };

  it('is refused while a call runs or waits, and by its own tools', async () => {
    const state = await stateOf('tools');
    const tried: unknown[] = [];
    const load = tool({
      name: 'load',
      description: 'Loads.',
      run: async (): Promise<string> => {
        await session.loadState(state).catch((error: unknown) => tried.push(error));
        return 'tried';
      },
    });
    const session = sessions(
      createAgent({
        model: scriptedModel([toolCall('load')], [text('done')]),
        tools: [load],
      }),
    ).open('s');
    await session.call('?');
    const message =
      "The session 's' has a running call, so its state cannot be replaced. Wait until the call has ended, or interrupt it.";
    expect(tried).toMatchObject([{ code: 'busy', message }]);
    await session.loadState(state);
    expect((await session.saveState()).messages).toEqual(state.messages);
  });

  it('keeps calls away while it loads, and lets those begin that wait', async () => {
    const replaced$ = new Subject<never>();
    const session = sessions(sampleAgent([[text('b')]]), {
      memory: memoryOf({ replace$: () => replaced$ }),
    }).open('s');
    const loaded = session.loadState(await stateOf('empty'));
    await expect(session.call('a')).rejects.toMatchObject({ code: 'busy' });
    await expect(session.call('a', { onBusy: 'steer' })).rejects.toMatchObject({ code: 'busy' });
    await expect(session.loadState(await stateOf('empty'))).rejects.toMatchObject({ code: 'busy' });
    expect(await session.steer('a')).toMatchObject({ status: 'notDelivered' });
    expect(session.interrupt()).toBe(false);
    const waiting = session.call('b', { onBusy: 'queue' });
    expect(session.queue.calls).toHaveLength(1);
    replaced$.complete();
    await loaded;
    expect((await waiting).reason).toBe('answer');
  });

  it('is cold, and leaves a session alone that is left', async () => {
    const state = await stateOf('tools');
    const session = sessions(sampleAgent([[text('a')]]), {
      memory: memoryOf({ replace$: () => NEVER }),
    }).open('s');
    void session.loadState$(state);
    session.loadState$(state).subscribe().unsubscribe();
    expect(session.queue.calls).toEqual([]);
    expect((await session.call('a')).reason).toBe('answer');
  });

  it.each<[string, Partial<Memory>, string]>([
    ['fails', { replace$: () => throwError(() => new Error('disk full')) }, 'disk full'],
    [
      'cannot do it',
      { replace$: undefined as never },
      "it has no 'replace$'. Add replace$(messages)",
    ],
  ])('I10: leaves all as it was if the memory %s', async (_name, changes, message) => {
    const session = sessions(sampleAgent([[text('a')]]), { memory: memoryOf(changes) }).open('s');
    await session.call('a');
    session.toolkit.activate('web');
    const before = await session.saveState();
    await expect(session.loadState(await stateOf('groups'))).rejects.toMatchObject({
      code: 'memory',
      message: expect.stringContaining(message),
    });
    expect(await session.saveState()).toEqual(before);
    session.toolkit.deactivate('web');
    expect(session.interrupt()).toBe(false);
  });

  const writes = { name: 'm', stream$: () => of(text('A summary.'), finish()) };
  it.each<[string, () => ReturnType<typeof inProcessMemory>]>([
    ['shows a window', () => windowMemory(inProcessMemory(), { turns: 1 })],
    [
      'summarises',
      () => summarisingMemory(inProcessMemory(), { model: writes, keepTurns: 1, whenTokens: 0 }),
    ],
    ['keeps inputs and answers', () => inputAndAnswer(inProcessMemory())],
  ])('saves all that a memory keeps that %s, and loads it again', async (_name, factory) => {
    const session = sessions(sampleAgent([[text('a')], [text('b')], [text('c')]]), {
      memory: factory(),
    }).open('s');
    for (const said of ['a', 'b', 'c']) await session.call(said);
    const state = await session.saveState();
    expect(state.messages).toHaveLength(6);
    const shown = await firstValueFrom(session.memory.load$());
    const other = sessions(sampleAgent([]), { memory: factory() }).open('s');
    await other.loadState(state);
    expect(await other.saveState()).toEqual(state);
    expect(await firstValueFrom(other.memory.load$())).toEqual(shown);
  });

  it('forgets the summary of what was there before', async () => {
    let nth = 0;
    const model = { name: 'm', stream$: () => of(text(`Summary ${(nth += 1)}.`), finish()) };
    const memory = summarisingMemory(inProcessMemory(), { model, keepTurns: 1, whenTokens: 0 });
    const session = sessions(sampleAgent([]), { memory }).open('s');
    const empty = await stateOf('empty');
    const said: Message = { id: 'b', role: 'assistant', content: [textBlock('b')] };
    const others = [said, user('c')];
    await session.loadState({ ...empty, messages: [user('a'), ...others] });
    expect(JSON.stringify(await firstValueFrom(session.memory.load$()))).toContain('Summary 1.');
    await session.loadState({ ...empty, messages: [user('a', 'Another.'), ...others] });
    expect(JSON.stringify(await firstValueFrom(session.memory.load$()))).toContain('Summary 2.');
  });
});
