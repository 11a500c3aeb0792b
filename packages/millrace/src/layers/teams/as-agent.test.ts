import { describe, expect, it } from '@jest/globals';
import { concatMap, lastValueFrom, map, NEVER, of, Subject, throwError, toArray } from 'rxjs';
import {
  type Agent,
  type AgentEvent,
  contextKey,
  createAgent,
  guardOutput,
  inProcessMemory,
  type Input,
  interruptOn,
  MillraceError,
  on,
  output,
  parallel,
  partialOutput$,
  prepare,
  race,
  type Reply,
  route,
  sequential,
  text as textIn,
  textBlock,
  textOf,
  tool,
} from '../../index.js';
import { retrieve } from '../retrieval/index.js';
import { jsonSchema } from '../../schema/index.js';
import {
  finish,
  marbles,
  record,
  scriptedModel,
  text,
  toolCall,
  verifyEvents,
} from '../../testing/index.js';
import { aggregate, asAgent, createStep, speaking } from './index.js';
import { guardInput } from '../guards/index.js';
import { sessions } from '../sessions/index.js';

const saying = (name: string, ...says: readonly string[]) =>
  createAgent({ name, model: scriptedModel(...says.map((it) => [text(it)])) });

const textsOf = (events: readonly AgentEvent[], options?: { subAgents: boolean }) =>
  lastValueFrom(of(...events).pipe(textIn(options), toArray()));

describe('asAgent', () => {
  it('G5: is an agent: the last reply of its steps is its reply, and its words are its own', async () => {
    const team = asAgent(sequential(saying('researcher', 'facts'), saying('writer', 'prose')), {
      name: 'team',
    });
    const events = await record(team.stream$('?', { callId: 'c' }));
    const replies = events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []));
    expect(replies.at(-1)).toMatchObject({
      id: 'c/step+2/1',
      reason: 'answer',
      name: 'writer',
      content: [text('prose')],
      iterations: 0,
      toolCalls: [],
    });
    expect(await textsOf(events)).toEqual(['prose']);
    expect(await textsOf(events, { subAgents: true })).toEqual(['facts', 'prose']);
    expect(events.map(({ type, agent }) => `${agent.join('/')} ${type}`)).toEqual([
      'team preCall',
      'team/researcher preCall',
      'team/researcher preReasoning',
      'team/researcher reasoningChunk',
      'team/researcher postReasoning',
      'team/researcher postCall',
      'team/writer preCall',
      'team/writer preReasoning',
      'team/writer reasoningChunk',
      'team/writer postReasoning',
      'team/writer postCall',
      'team postCall',
    ]);
    expect(new Set(events.map(({ rootId }) => rootId))).toEqual(new Set(['c']));
  });

  it('H1: only the agent that speaks has it in its events', async () => {
    const inner = asAgent(
      sequential(
        parallel(saying('a', 'A'), saying('b', 'B')),
        route(() => saying('c', 'C')),
      ),
      { name: 'inner' },
    );
    const outer = asAgent(sequential(saying('first', 'F'), inner), { name: 'outer' });
    const events = await record(outer.stream$('?'));
    const speaking = new Set(
      events.filter(({ speaks }) => speaks).map(({ agent }) => agent.join('/')),
    );
    expect([...speaking]).toEqual(['outer/inner', 'outer/inner/c']);
    expect(await textsOf(events)).toEqual(['C']);
  });

  it('H1: speaks counts only if the call above speaks itself', async () => {
    const quiet = saying('quiet', 'deep');
    const inner = createAgent({
      name: 'inner',
      model: scriptedModel([toolCall('ask')], [text('done')]),
      tools: [
        tool({
          name: 'ask',
          description: 'Asks.',
          run: (_input, parent) => quiet.call$('?', speaking({ parent })).pipe(map(textOf)),
        }),
      ],
    });
    const outer = createAgent({
      model: scriptedModel([toolCall('ask')], [text('end')]),
      tools: [
        tool({
          name: 'ask',
          description: 'Asks.',
          run: (_input, parent) => inner.call$('?', { parent }).pipe(map(textOf)),
        }),
      ],
    });
    const events = await record(outer.stream$('?'));
    expect(events.filter(({ speaks }) => speaks)).toEqual([]);
    const old: object = { speaks: true };
    expect(() => quiet.call$('?', old)).toThrow("has no option 'speaks'");
  });

  it('I9: what is streamed for it is what is stored of it', async () => {
    const memory = inProcessMemory();
    const writer = createAgent({
      name: 'writer',
      model: scriptedModel([text('Looking. '), toolCall('look')], [text('It '), text('is.')]),
      tools: [tool({ name: 'look', description: 'Looks.', run: () => 'seen' })],
    });
    const team = asAgent(sequential(writer), { name: 'team' });
    const events = await record(
      sessions(team, { memory }).open('s').stream$('Is it?', { callId: 'c' }),
    );
    expect(await textsOf(events)).toEqual(['Looking. ', 'It ', 'is.']);
    expect(await lastValueFrom(memory('s').load$())).toEqual([
      { id: 'c/input/0', role: 'user', content: [text('Is it?')] },
      { id: 'c/step/2', role: 'assistant', name: 'writer', content: [text('It is.')] },
    ]);
  });

  it('I9: verifyEvents finds words that are not in the reply', async () => {
    const shouting = createStep((input, options) =>
      saying('a', 'word')
        .call$(input, options)
        .pipe(map((reply) => ({ ...reply, content: [textBlock('WORD')] }))),
    );
    const team = asAgent(shouting, { name: 'team' });
    await expect(record(team.stream$('?'))).rejects.toThrow(
      "its reply says 'WORD', and 'word' was streamed for it",
    );
    const verified$ = team.stream$('?').pipe(verifyEvents({ edits: true }));
    expect((await lastValueFrom(verified$)).type).toBe('postCall');
  });

  it.each<readonly [string, unknown, string]>([
    ['a text', 'plain', 'plain'],
    ['a message', { role: 'user', name: 'x', content: [text('said')] }, 'said'],
    ['content blocks', [text('a'), text('b')], 'ab'],
    ['a list', [{ role: 'assistant', name: 'x', content: [text('a')] }, 'b'], 'x:\na\n\nb'],
  ])('G5: takes %s as its answer', async (_what, value, expected) => {
    const step = createStep<Input>(() => of(value as Input));
    const reply = await asAgent(step, { name: 'team' }).call('?', { callId: 'c' });
    expect(reply).toMatchObject({ id: 'c/answer', reason: 'answer' });
    expect(textOf(reply)).toBe(expected);
  });

  it('G5: takes the replies of a parallel by their names', async () => {
    const team = asAgent(parallel(saying('optimist', 'Yes.'), saying('sceptic', 'No.')));
    const events = await record(team.stream$('?'));
    expect(await textsOf(events)).toEqual(['optimist:\nYes.\n\nsceptic:\nNo.']);
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe(
      'optimist:\nYes.\n\nsceptic:\nNo.',
    );
  });

  it('G5: a reply of another call gets an id of its own', async () => {
    const old = await saying('old', 'old').call('?');
    const session = sessions(asAgent(createStep(() => of(old)))).open('s');
    const ids = [
      await session.call('1', { callId: 'c' }),
      await session.call('2', { callId: 'd' }),
    ];
    expect(ids.map(({ id }) => id)).toEqual(['c/answer', 'd/answer']);
  });

  it.each<readonly [string, unknown]>([
    ['a number', 5],
    ['an empty list', []],
    ['an empty text', ''],
    ['null', null],
    ['a tool message', { role: 'tool', content: [] }],
    ['a list with a number', ['a', 5]],
  ])('I10: %s is no answer', async (_what, value) => {
    const step = createStep<Input>(() => of(value as Input));
    await expect(asAgent(step).call('?')).rejects.toMatchObject({ code: 'invalidState' });
  });

  it('I10: steps that emit nothing are an error, and so is what they throw', async () => {
    const nothing = createStep<Input>(() => of());
    await expect(asAgent(nothing, { name: 'n' }).call('?')).rejects.toMatchObject({
      code: 'emptyAnswer',
      message: "The steps of the agent 'n' returned no answer.",
    });
    const broken = createStep<Input>(() => {
      throw new Error('oops');
    });
    await expect(asAgent(broken, { name: 'n' }).call('?')).rejects.toMatchObject({
      code: 'unknown',
      message: "The steps of the agent 'n' failed: oops",
    });
    const failing = createAgent({ model: scriptedModel([finish('length')], [finish()]) });
    const typed = asAgent(
      createStep(() => throwError(() => new MillraceError('rateLimited', 'slow down'))),
    );
    await expect(typed.call('?')).rejects.toMatchObject({ code: 'rateLimited' });
    expect((await asAgent(sequential(failing)).call('?')).reason).toBe('truncated');
  });

  it('R3: passes an output on, and validates one of its own', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    } as const;
    const model = scriptedModel([text('{"city":"Oslo"}')], [text('{"city":"Oslo"}')]);
    const finder = createAgent({ name: 'finder', model, use: [output(jsonSchema(schema))] });
    const reply = await asAgent(sequential(finder)).call('?');
    const city: string = reply.output?.city ?? '';
    expect(city).toBe('Oslo');
    const strict = asAgent(sequential(saying('a', '{"city":"Bergen"}')), {
      use: [output(jsonSchema(schema))],
    });
    expect((await strict.call('?')).output).toEqual({ city: 'Bergen' });
    const wrong = asAgent(sequential(saying('a', 'Bergen')), { use: [output(jsonSchema(schema))] });
    await expect(wrong.call('?')).rejects.toMatchObject({ code: 'invalidResponse' });
    const previews = await lastValueFrom(
      asAgent(sequential(finder)).stream$('?').pipe(partialOutput$, toArray()),
    );
    expect(previews.at(-1)).toEqual({ city: 'Oslo' });
  });

  it('C1: guards, sessions and the last word are as with any agent', async () => {
    const model = scriptedModel([text('one')], [text('two')]);
    const memory = inProcessMemory();
    const team = asAgent(sequential(createAgent({ name: 'a', model })), {
      name: 'team',
      use: [
        prepare(
          map((it) => ({ ...it, input: [{ role: 'user', content: [textBlock('edited')] }] })),
        ),
        on(
          'postCall',
          map((it) => ({ ...it, reply: { ...it.reply, content: [textBlock('reviewed')] } })),
        ),
      ],
    });
    expect(textOf(await sessions(team, { memory }).open('s').call('?'))).toBe('reviewed');
    expect(model.requests[0]?.messages).toMatchObject([{ content: [text('edited')] }]);
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual(['edited', 'reviewed']);
    const vetoed = asAgent(sequential(saying('a')), { use: [prepare(concatMap(() => of()))] });
    expect((await vetoed.call('?')).reason).toBe('stopped');
  });

  it('H7: what changes its words changes those that are said for it', async () => {
    const team = asAgent(sequential(saying('a', 'my password'), saying('b', 'the password is x')), {
      use: [guardOutput('password')],
    });
    const events = await record(team.stream$('?'));
    expect(await textsOf(events)).toEqual(['the ']);
    const said = events.filter(({ type }) => type === 'reasoningChunk');
    expect(said.length).toBe(2);
  });

  it('R5: warns of options that its steps have to be given', async () => {
    const events = await record(
      asAgent(sequential(saying('a', 'A'))).stream$('?', {
        request: { temperature: 0 },
        model: scriptedModel(),
        limits: { timeouts: { callMs: 1000 } },
      }),
    );
    const warnings = events.flatMap((it) => (it.type === 'warning' ? [it.message] : []));
    expect(warnings).toEqual([
      'An agent made of steps has no loop of its own, so it ignores model, temperature. Set that on the agents in its steps.',
    ]);
  });

  it('T2: context values and metadata cross the border', async () => {
    const key = contextKey<string>('who');
    const inner = createAgent({
      name: 'inner',
      model: scriptedModel([toolCall('who')], [text('done')]),
      tools: [
        tool({
          name: 'who',
          description: 'Tells.',
          run: (_input, { get, metadata, agent }) =>
            `${get(key)} ${metadata['tenant']} ${agent.join('/')}`,
        }),
      ],
    });
    const team = asAgent(
      createStep((input, options) => inner.call$(input, options)),
      {
        name: 'team',
        context: [key.of('ada')],
      },
    );
    const events = await record(team.stream$('?', { metadata: { tenant: 't' } }));
    const done = events.find(({ type }) => type === 'postActing');
    expect(done?.type === 'postActing' && textOf(done.result)).toBe('ada t team/inner');
  });

  it('I5: leaving it ends what is below in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const deep = model('-----');
      const team = asAgent(asAgentOf(asAgentOf(createAgent({ model: deep }))));
      expectObservable(team.call$('?', { scheduler }), '^--!').toBe('----');
      expectSubscriptions(deep.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('S1: an interrupt ends the running agent politely, and begins no other', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [first, second] = [model('-t------'), model('-(tf|)')];
      const memory = inProcessMemory();
      const team = asAgent(
        sequential(
          sessions(createAgent({ name: 'a', model: first })).open('own'),
          createAgent({ name: 'b', model: second }),
        ),
        { name: 'team' },
      );
      const types: string[] = [];
      team.events$.subscribe(({ agent, type }) => types.push(`${agent.join('/')} ${type}`));
      const reply$ = sessions(team, { memory })
        .open('s')
        .call$('?', { scheduler, use: [interruptOn(cold('---x', { x: 0 }))] })
        .pipe(map((reply) => `${reply.reason} ${textOf(reply)}`));
      expectObservable(reply$).toBe('---(r|)', { r: 'interrupted Interrupted.' });
      expectSubscriptions(first.subscriptions[0] ?? []).toBe('^--!');
      scheduler.schedule(() => {
        expect(second.requests).toEqual([]);
        expect(types).not.toContain('team/b preCall');
        expect(types.slice(-3)).toEqual([
          'team/a postCall',
          'team messagesAppended',
          'team postCall',
        ]);
      }, 5);
    });
  });

  it('S1: what was said until then is the reply, or the message of the interrupt', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const replied = (message: number | string) =>
        asAgent(sequential(createAgent({ name: 'a', model: model('-t-----') })), { name: 'team' })
          .call$('?', { scheduler, use: [interruptOn(cold('---x', { x: message }))] })
          .pipe(map((reply) => `${reply.reason} ${reply.name} ${textOf(reply)}`));
      expectObservable(replied(0)).toBe('---(r|)', { r: 'interrupted a t' });
      expectObservable(replied('Enough.')).toBe('---(r|)', { r: 'interrupted team Enough.' });
    });
  });

  it('S1: an interrupt before the first step begins no step, and one cuts what hangs', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const never = model('-t');
      const early = asAgent(sequential(createAgent({ model: never })))
        .call$('?', { scheduler, use: [interruptOn(of(0))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(early).toBe('(r|)', { r: 'interrupted' });
      scheduler.schedule(() => expect(never.requests).toEqual([]), 5);
      const hanging = asAgent(createStep<Input>(() => NEVER))
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(hanging).toBe('--(r|)', { r: 'interrupted' });
      const waiting = asAgent(sequential(saying('a', 'A')), {
        use: [
          {
            name: 'never',
            call: (context) => (next) => (call) =>
              context
                .perform({
                  kind: 'wait',
                  id: 'never',
                  input: undefined,
                  run: () => NEVER,
                  cut: () => of(0),
                })
                .pipe(concatMap(() => next(call))),
          },
        ],
      })
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(waiting).toBe('--(r|)', { r: 'interrupted' });
    });
  });

  it('C5: callMs cuts it', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model('-----');
      const team = asAgent(sequential(createAgent({ model: slow })), { name: 'team' });
      expectObservable(
        team.call$('?', { scheduler, limits: { timeouts: { callMs: 3 } } }).pipe(map(textOf)),
      ).toBe(
        '---#',
        {},
        new MillraceError('timeout', 'The call did not finish within 3 ms (callMs).', {
          retryable: true,
        }),
      );
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('S3: its session is busy while its steps run', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const inner = model(['--(tf|)', '--(tf|)']);
      const session = sessions(asAgent(sequential(createAgent({ model: inner })))).open('s');
      expectObservable(session.call$('1', { scheduler }).pipe(map(textOf))).toBe('--(t|)');
      expectObservable(session.call$('2', { scheduler, onBusy: 'queue' }).pipe(map(textOf))).toBe(
        '----(t|)',
      );
    });
  });

  it('T13: what waits below is reported, by the session that knows it', async () => {
    const member = createAgent({
      name: 'm',
      model: scriptedModel([text('Done.')]),
    });
    const waiting = createStep((input, options) =>
      member.call$(input, options).pipe(
        map((reply): Reply => ({
          ...reply,
          content: [],
          reason: 'suspended',
          suspensions: [
            {
              toolCall: { type: 'tool_call', id: 't', name: 'pay', input: {} },
              request: 1,
              from: 'program',
            },
          ],
        })),
      ),
    );
    const reply = await asAgent(waiting).call('?');
    expect(reply.reason).toBe('suspended');
    expect(reply.suspensions).toMatchObject([{ toolCall: { id: 't' }, request: 1 }]);
  });

  it('C1: what was found for it is in its reply', async () => {
    const team = asAgent(sequential(saying('a', 'A')), {
      use: [retrieve({ retrieve$: () => of([{ source: 's', text: 'found' }]) })],
    });
    expect((await team.call('?')).sources).toEqual([{ source: 's', text: 'found' }]);
  });

  it('G5: race and foreign operators are steps of it, and do not speak', async () => {
    const team = asAgent(
      sequential(
        race(saying('a', 'A')),
        map((input: Input) => (typeof input === 'string' ? input : 'mapped')),
      ),
    );
    const events = await record(team.stream$('?'));
    expect(await textsOf(events)).toEqual(['mapped']);
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe('mapped');
  });

  it("refuses what is no step, and options that are a loop's", () => {
    expect(() => asAgent('writer' as never)).toThrow('asAgent() needs a step');
    expect(() => asAgent(map(String), { model: scriptedModel() } as never)).toThrow(
      "asAgent() has no option 'model'",
    );
    expect(() => createStep('x' as never)).toThrow('createStep() needs a function');
  });
});

const asAgentOf = (agent: Agent) => asAgent(sequential(agent));

describe('steering a call of steps', () => {
  const guarded = guardInput(({ text: said }) => !said.includes('bad'));
  const make = () => {
    const done$ = new Subject<string>();
    const model = scriptedModel([toolCall('work')], [text('All of it.')]);
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const writer = createAgent({ name: 'writer', model, tools: [work] });
    const team = asAgent(sequential(saying('researcher', 'facts'), writer), { name: 'team' });
    return { done$, model, agent: asAgent(team, { name: 'flow', use: [guarded] }) };
  };
  const end = (done$: Subject<string>) => {
    done$.next('Worked.');
    done$.complete();
  };

  it('S3: reaches the agent that speaks for it, at its next turn, and the memory of the session', async () => {
    const { done$, model, agent } = make();
    const memory = inProcessMemory();
    const session = sessions(agent, { memory }).open('s');
    const running = record(session.stream$('Do it.'));
    const said = session.steer('And this.');
    end(done$);
    const events = await running;
    expect(await said).toEqual({ status: 'delivered', iteration: 2 });
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['facts', '', '', 'And this.']);
    expect(events.filter(({ type }) => type === 'steered')).toMatchObject([
      { agent: ['flow', 'team', 'writer'], message: { role: 'user' } },
    ]);
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual([
      'Do it.',
      'And this.',
      'All of it.',
    ]);
  });

  it('C1: passes the guards of the call of steps', async () => {
    const { done$, model, agent } = make();
    const session = sessions(agent).open('s');
    const running = session.call('Do it.');
    const said = session.steer('Something bad.');
    end(done$);
    expect((await running).text).toBe('All of it.');
    expect(await said).toEqual({ status: 'notDelivered', why: 'vetoed' });
    expect(model.requests[1]?.messages).toHaveLength(3);
  });

  it('S3: is not delivered if no agent that speaks takes another turn', async () => {
    const { done$ } = make();
    const model = scriptedModel([toolCall('work')], [text('Facts.')]);
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const researcher = createAgent({ name: 'researcher', model, tools: [work] });
    const session = sessions(asAgent(aggregate(researcher, () => 'Done.'))).open('s');
    const running = session.call('Do it.');
    const said = session.steer('And this.');
    end(done$);
    expect((await running).text).toBe('Done.');
    expect(await said).toEqual({ status: 'notDelivered', why: 'ended' });
  });
});
