import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, of } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  on,
  suspend,
  suspensionsIn,
  textOf,
  tool,
  toolOutput,
  toolResults,
} from '../index.js';
import { strictHistory } from './repair.js';
import { unpaired } from '../values/pairing.js';
import { withResults } from './suspend.js';
import { jsonSchema } from '../schema/index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const sign = tool({
  name: 'sign',
  description: 'Has a person sign.',
  input: jsonSchema({ type: 'object', properties: { paper: { type: 'string' } } }),
  run: ({ paper }) => suspend({ paper }),
});
const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

const agentOf = (model: ReturnType<typeof scriptedModel>) =>
  createAgent({ model, tools: [sign, look] });

/** A session that waits for one signature, with a sibling that did not wait. */
const suspended = async (...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel([toolCall('sign', { paper: 'A' }), toolCall('look')], ...answers);
  const memory = inProcessMemory();
  const session = sessions(agentOf(model), { memory }).open('s');
  const reply = await session.call('Sign A.');
  return { model, memory, session, reply, id: reply.suspensions?.[0]?.toolCall.id ?? '' };
};

const stored = (memory: MemoryFactory) => lastValueFrom(memory('s').load$());

describe('T13: a tool that suspends', () => {
  it('ends the call as suspended, with its siblings stored and nothing half-built', async () => {
    const { memory, reply } = await suspended();
    expect(reply).toMatchObject({
      reason: 'suspended',
      content: [],
      suspensions: [{ toolCall: { name: 'sign', input: { paper: 'A' } }, request: { paper: 'A' } }],
      toolCalls: [{ name: 'sign' }, { name: 'look', output: 'seen' }],
    });
    const messages = await stored(memory);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(unpaired(messages)).toBeUndefined();
    expect(suspensionsIn(messages)).toEqual(reply.suspensions);
  });

  it('is reported by an event', async () => {
    const model = scriptedModel([toolCall('sign', { paper: 'A' })]);
    const events = await record(sessions(agentOf(model)).open('s').stream$('Sign A.'));
    expect(events.map(({ type }) => type).slice(-4)).toEqual([
      'postActing',
      'suspended',
      'messagesAppended',
      'postCall',
    ]);
    expect(events.at(-3)).toMatchObject({ toolCall: { name: 'sign' }, request: { paper: 'A' } });
  });

  it('T7: reports extras that are lost with it', async () => {
    const gives = tool({
      name: 'gives',
      description: 'Gives rows.',
      run: () => toolOutput({ content: 'given', extras: { rows: [1] } }),
    });
    const model = scriptedModel([toolCall('gives'), toolCall('sign', { paper: 'A' })]);
    const agent = createAgent({ model, tools: [sign, gives] });
    const events = await record(sessions(agent).open('s').stream$('Sign A.'));
    expect(events.at(-3)).toMatchObject({
      type: 'warning',
      message: expect.stringContaining('are lost: rows.'),
    });
  });

  it('is reported as lost in a call that nothing remembers', async () => {
    const model = scriptedModel([toolCall('sign', { paper: 'A' })]);
    const events = await record(agentOf(model).stream$('Sign A.'));
    expect(events.at(-2)).toMatchObject({
      type: 'warning',
      message: expect.stringContaining('Only a session can resume this call'),
    });
  });

  it('continues when its result comes: the model sees it at the place of the call', async () => {
    const { model, memory, session, id } = await suspended([text('Signed.')]);
    const reply = await session.call(toolResults({ [id]: { by: 'Ada' } }));
    expect(reply).toMatchObject({ reason: 'answer', content: [{ text: 'Signed.' }] });
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolCallId: id, isError: false, content: [{ text: '{"by":"Ada"}' }] },
      { content: [{ text: 'seen' }] },
    ]);
    expect(JSON.stringify(model.requests[1])).not.toContain('suspended');
    expect(suspensionsIn(await stored(memory))).toEqual([]);
  });

  it('continues in another process, from what was stored', async () => {
    const { memory, id } = await suspended();
    const messages = structuredClone(await stored(memory));
    const later = scriptedModel([text('Signed.')], [text('Bye.')]);
    const kept = [...messages];
    const elsewhere = sessions(agentOf(later), {
      memory: () => ({
        load$: () => of([...kept]),
        append$: (added) => {
          kept.push(...added);
          return of(undefined);
        },
      }),
    }).open('s');
    expect((await elsewhere.call(toolResults({ [id]: 'yes' }))).reason).toBe('answer');
    // And the next call has the conversation as it is now.
    await elsewhere.call('Thanks.');
    expect(later.requests[1]?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant'],
      'user',
    ]);
  });

  it('may be answered with what a tool may return, and with words of the user after it', async () => {
    const { model, session, id } = await suspended([text('I see.')]);
    await session.call([
      toolResults({ [id]: toolOutput({ content: 'Refused.', isError: true }) }),
      { role: 'user', content: [{ type: 'text', text: 'Leave it.' }] },
    ]);
    expect(model.requests[1]?.messages.slice(-2)).toMatchObject([
      { role: 'tool', content: [{ isError: true, content: [{ text: 'Refused.' }] }, {}] },
      { role: 'user', content: [{ text: 'Leave it.' }] },
    ]);
  });

  it('may suspend again, also together with others', async () => {
    const { session, id } = await suspended(
      [toolCall('sign', { paper: 'B' }), toolCall('sign', { paper: 'C' })],
      [text('All signed.')],
    );
    const again = await session.call(toolResults({ [id]: 'yes' }));
    const ids = again.suspensions?.map(({ toolCall: use }) => use.id) ?? [];
    expect(ids).toHaveLength(2);
    const done = await session.call(toolResults(Object.fromEntries(ids.map((it) => [it, 'yes']))));
    expect(done.reason).toBe('answer');
  });

  it('refuses what does not fit, and the session stays as it was', async () => {
    const { memory, session, id } = await suspended([text('Signed.')]);
    const before = await stored(memory);
    const result = { type: 'tool_result', toolCallId: id, content: [], isError: false } as const;
    const cases = [
      ['And now?', `The session is suspended: it waits for the results of ${id}.`],
      [
        toolResults({ other: 1 }),
        `No tool call 'other' waits for a result. Tool calls that do: ${id}.`,
      ],
      [toolResults({ toString: 1 }), `No tool call 'toString' waits for a result.`],
      [
        { role: 'tool', content: [result, result] },
        `There are two results for the tool call '${id}'.`,
      ],
    ] as const;
    for (const [input, message] of cases) {
      await expect(session.call(input, { onSuspended: 'refuse' })).rejects.toMatchObject({
        code: 'invalidResume',
        message: expect.stringContaining(message),
      });
    }
    expect(await stored(memory)).toEqual(before);
    expect((await session.call(toolResults({ [id]: 'yes' }))).reason).toBe('answer');
    await expect(session.call(toolResults({ [id]: 'yes' }))).rejects.toMatchObject({
      code: 'invalidResume',
    });
  });

  it('cannot continue without a session', async () => {
    const model = scriptedModel([toolCall('sign', { paper: 'A' })]);
    const agent = agentOf(model);
    const reply = await agent.call('Sign A.');
    const id = reply.suspensions?.[0]?.toolCall.id ?? '';
    await expect(agent.call(toolResults({ [id]: 'yes' }))).rejects.toMatchObject({
      code: 'invalidResume',
    });
  });

  it('that asks for what is no JSON is an observation', async () => {
    const odd = tool({ name: 'odd', description: 'Asks oddly.', run: () => suspend(12n) });
    const model = scriptedModel([toolCall('odd')], [text('done')]);
    const reply = await createAgent({ model, tools: [odd] }).call('?');
    expect(reply).toMatchObject({ reason: 'answer', toolCalls: [{ isError: true }] });
  });

  it('does not suspend where postActing has a result already', async () => {
    const model = scriptedModel([toolCall('sign')], [text('done')]);
    const decide = on(
      'postActing',
      map(({ result: { suspended: _suspended, ...result }, ...event }) => ({ ...event, result })),
    );
    const agent = createAgent({ model, tools: [sign], use: [decide] });
    expect((await agent.call('?')).reason).toBe('answer');
  });

  it('S1: that was interrupted meanwhile no longer waits: the session can continue', async () => {
    const model = scriptedModel([toolCall('sign'), toolCall('slow')], [text('done')]);
    const session = sessions(
      createAgent({
        model,
        tools: [
          sign,
          tool({
            name: 'slow',
            description: 'Is interrupted.',
            run: () => {
              session.interrupt('Stop.');
              return 'too late';
            },
          }),
        ],
      }),
    ).open('s');
    expect(await session.call('?')).toMatchObject({
      reason: 'interrupted',
      toolCalls: [{ output: 'Interrupted before its result arrived.', isError: true }, {}],
    });
    expect((await session.call('And now?')).reason).toBe('answer');
  });

  it('X16: takes results as they must be, and nothing else that a client may send', async () => {
    const { memory, session, id } = await suspended([text('Signed.')]);
    const result = { type: 'tool_result', toolCallId: id, isError: false };
    const blocks = [{ type: 'text', text: 'yes' }];
    for (const broken of [
      { ...result, content: 'text' },
      result,
      { ...result, type: 'foo', content: blocks },
      { ...result, isError: 'maybe', content: blocks },
      { ...result, content: [{ type: 'tool_call', id: 'x', name: 'look', input: {} }] },
    ]) {
      const input = { role: 'tool', content: [broken] } as never;
      await expect(session.call(input)).rejects.toMatchObject({ code: 'invalidRequest' });
    }
    const more = { ...result, content: blocks, suspended: { request: 1 }, other: 1 };
    const reply = await session.call({ role: 'tool', content: [more] } as never);
    expect(reply.reason).toBe('answer');
    expect(suspensionsIn(await stored(memory))).toEqual([]);
    expect(JSON.stringify(await stored(memory))).not.toContain('other');
    expect(() => toolResults({})).toThrow(/toolResults\(\) needs a result/);
  });

  it('I1: leaves results that are there as they are, for any memory', async () => {
    const { memory, model, session, id } = await suspended([text('Signed.')]);
    const [, , results] = await stored(memory);
    const other = results?.role === 'tool' ? (results.content[1]?.toolCallId ?? '') : '';
    const forged = toolResults({ [other]: 'forged' });
    await lastValueFrom(memory('s').append$([{ ...forged, id: 'forged' }]));
    const forgery = { code: 'memory' };
    const strict = session.with(strictHistory());
    await expect(strict.call(toolResults({ [id]: 'yes' }))).rejects.toMatchObject(forgery);
    expect(textOf(await session.call(toolResults({ [id]: 'yes' })))).toBe('Signed.');
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('forged');
  });

  it('T14: cuts a long result that is brought', async () => {
    const { model, session, id } = await suspended([text('Signed.')]);
    await session.call(toolResults({ [id]: 'x'.repeat(30) }), { limits: { maxObservation: 10 } });
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('20 of 30 characters');
  });

  it('refuses the id of a call that the session has had, also of one that brought results', async () => {
    const { session, id } = await suspended([toolCall('sign', { paper: 'B' })], [text('Signed.')]);
    const again = await session.call(toolResults({ [id]: 'yes' }), { callId: 'c1' });
    const next = toolResults({ [again.suspensions?.[0]?.toolCall.id ?? '']: 'yes' });
    await expect(session.call(next, { callId: 'c1' })).rejects.toMatchObject({ code: 'conflict' });
    expect((await session.call(next)).reason).toBe('answer');
  });
});

describe('T13: who may bring the result of a suspended tool call', () => {
  const waits = (name: string, from?: 'client' | 'program') =>
    tool({
      name,
      description: 'Waits.',
      run: () => suspend(null, from === undefined ? {} : { from }),
    });
  const tools = [waits('open'), waits('ours', 'client'), waits('theirs', 'program')];
  const sessionOf = (memory: MemoryFactory, ...names: readonly string[]) => {
    const model = scriptedModel(
      names.map((name) => toolCall(name, {}, name)),
      [text('Done.')],
    );
    return sessions(createAgent({ model, tools }), { memory }).open('s');
  };

  it('is the client unless the tool says that it is the program', async () => {
    const memory = inProcessMemory();
    const { suspensions = [] } = await sessionOf(memory, 'open', 'ours', 'theirs').call('?');
    expect(suspensions.map((it) => it.from)).toEqual(['client', 'client', 'program']);
    expect(suspensionsIn(await stored(memory))).toEqual(suspensions);
    expect(() => suspend(null, { from: 'anybody' as never })).toThrow("'client' or 'program'");
    expect(() => toolResults({ a: 1 }, { from: 'anybody' as never })).toThrow("'client' or");
  });

  it('is the program if stored data does not say', async () => {
    const memory = inProcessMemory();
    await sessionOf(memory, 'open').call('?');
    const bare = JSON.parse(
      JSON.stringify(await stored(memory)).replaceAll(',"from":"client"', ''),
    ) as Awaited<ReturnType<typeof stored>>;
    expect(suspensionsIn(bare)).toMatchObject([{ from: 'program' }]);
  });

  const cases = ['open', 'ours', 'theirs'].flatMap((name) =>
    (['client', 'program'] as const).map((by) => ({ name, by })),
  );

  it.each(cases)('$name: a result by the $by', async ({ name, by }) => {
    const memory = inProcessMemory();
    const session = sessionOf(memory, name);
    await session.call('?');
    const before = await stored(memory);
    const call = session.call(toolResults({ [name]: 'Yes.' }, { from: by }));
    if (name === 'theirs' && by === 'client') {
      await expect(call).rejects.toMatchObject({
        ...{ code: 'invalidResume', status: 409 },
        message: expect.stringContaining('waits for the program'),
      });
      expect(await stored(memory)).toEqual(before);
      return;
    }
    expect((await call).text).toBe('Done.');
    // It is kept who brought it.
    const results = JSON.stringify((await stored(memory)).slice(before.length));
    expect(results.includes('"from":"client"')).toBe(by === 'client');
  });

  it('may be both of them, one after the other', async () => {
    const memory = inProcessMemory();
    const session = sessionOf(memory, 'open', 'ours', 'theirs');
    await session.call('?');
    const refusals = [
      // The client brings all of its results.
      toolResults({ open: 1 }, { from: 'client' }),
      toolResults({ open: 1, ours: 2, theirs: 3 }, { from: 'client' }),
      // The program brings all of one kind, or of both.
      toolResults({ open: 1, theirs: 3 }),
    ];
    for (const refused of refusals) {
      await expect(session.call(refused)).rejects.toMatchObject({ code: 'invalidResume' });
    }
    // A part is no turn of the conversation.
    await expect(
      session.call([toolResults({ theirs: 3 }), 'And now?'], { onSuspended: 'refuse' }),
    ).rejects.toMatchObject({ code: 'invalidResume' });
    const part = await session.call(toolResults({ theirs: 3 }));
    expect([part.reason, part.suspensions?.map(({ toolCall }) => toolCall.id)]).toEqual([
      'suspended',
      ['open', 'ours'],
    ]);
    expect(unpaired(withResults(await stored(memory)))).toBeUndefined();
    const rest = await session.call(toolResults({ ours: 2, open: 1 }, { from: 'client' }));
    expect(rest.text).toBe('Done.');
    expect(suspensionsIn(await stored(memory))).toEqual([]);
  });
});
