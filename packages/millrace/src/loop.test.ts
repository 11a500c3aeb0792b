import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concat,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  type Observable,
  of,
  throwError,
  timer,
} from 'rxjs';
import {
  type AgentOptions,
  type CallOptions,
  createAgent,
  inProcessMemory,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  only,
  textBlock,
  textOf,
  tool,
  toolOutput,
  type ToolCallBlock,
} from './index.js';
import {
  finish,
  marbles,
  record,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from './testing/index.js';
import { sessions } from './layers/sessions/index.js';
import { journal } from './journal/index.js';

const clock = tool({ name: 'clock', description: 'Tells the time.', run: () => 'noon' });
const unbounded = { limits: { maxIterations: 20_000, onLimit: 'partial' } } as const;

const halfToolCall: ModelChunk = { type: 'toolCall', index: 0, name: 'spy', json: '{"a":' };

/** A model that asks for its tool without end, and keeps nothing. */
const tireless: Model = {
  name: 'tireless',
  stream$: () => from([toolCall('clock'), finish()]),
};

describe('the loop', () => {
  it('L1: reasons, acts, reasons again and answers', async () => {
    const model = scriptedModel([toolCall('clock')], [text('It is '), text('noon.')]);
    const agent = createAgent({ model, tools: [clock] });
    const events = await record(agent.stream$('What time is it?'));
    expect(events.map(({ type, iteration }) => `${iteration} ${type}`)).toEqual([
      '0 preCall',
      '1 preReasoning',
      '1 reasoningChunk',
      '1 postReasoning',
      '1 preActing',
      '1 postActing',
      '2 preReasoning',
      '2 reasoningChunk',
      '2 reasoningChunk',
      '2 postReasoning',
      '2 postCall',
    ]);
    model.verify();
  });

  it('L1: stores the messages of a turn before the next turn begins', async () => {
    const memory = inProcessMemory();
    const stored: number[] = [];
    const watch = on(
      'preReasoning',
      map((event) => {
        memory('s')
          .load$()
          .subscribe((messages) => stored.push(messages.length));
        return event;
      }),
    );
    const model = scriptedModel([toolCall('clock')], [text('noon')]);
    const agent = createAgent({ model, tools: [clock], use: [watch] });
    await sessions(agent, { memory }).open('s').call('?');
    expect(stored).toEqual([0, 3]);
    const messages = await lastValueFrom(memory('s').load$());
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  it('L4: a reply says how and why the call ended', async () => {
    const model = scriptedModel(
      [
        toolCall('clock', { zone: 'UTC' }),
        { type: 'usage', usage: { inputTokens: 3, outputTokens: 4 } },
      ],
      [text('noon'), { type: 'usage', usage: { inputTokens: 5, cacheReadTokens: 2 } }],
    );
    const reply = await createAgent({ name: 'c', model, tools: [clock] }).call('?');
    expect(reply).toMatchObject({
      role: 'assistant',
      name: 'c',
      reason: 'answer',
      finish: 'stop',
      iterations: 2,
      toolCalls: [{ name: 'clock', output: 'noon', isError: false }],
      usage: { inputTokens: 8, outputTokens: 4, cacheReadTokens: 2, cacheWriteTokens: 0 },
    });
    expect(textOf(reply)).toBe('noon');
  });

  it('L4: a length cut is truncated, with its partial text and without its tools', async () => {
    const model = scriptedModel([text('Half'), toolCall('clock'), finish('length')]);
    const reply = await createAgent({ model, tools: [clock] }).call('?');
    expect(reply).toMatchObject({ reason: 'truncated', finish: 'length', toolCalls: [] });
    expect(reply.content).toEqual([{ type: 'text', text: 'Half' }]);
  });

  it.each(['refusal', 'filtered'] as const)('L4: a %s is refused', async (why) => {
    const reply = await createAgent({ model: scriptedModel([text('No.'), finish(why)]) }).call('?');
    expect(reply).toMatchObject({ reason: 'refused', finish: why });
  });

  it("L4: a provider's pause continues the same message in the same iteration", async () => {
    const model = scriptedModel(
      [thinking('hm'), text('One, '), finish('pause')],
      [text('two.'), finish()],
    );
    const events = await record(createAgent({ model }).stream$('Count.'));
    const replies = events.filter((event) => event.type === 'postCall');
    expect(replies.map(({ reply }) => [textOf(reply), reply.iterations])).toEqual([
      ['One, two.', 1],
    ]);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: [{ type: 'thinking' }, { type: 'text', text: 'One, ' }],
    });
  });

  it('L4: a model that pauses without end is an error', async () => {
    const model: Model = { name: 'p', stream$: () => of(finish('pause')) };
    await expect(createAgent({ model }).call('?')).rejects.toMatchObject({
      code: 'invalidResponse',
    });
  });

  it('L5: an empty answer gets one reminder, which is not stored', async () => {
    const model = scriptedModel([text(' ')], [text('Here.')]);
    const memory = inProcessMemory();
    const agent = createAgent({ model });
    const events = await record(sessions(agent, { memory }).open('s').stream$('?'));
    expect(events.map(({ type }) => type)).toContain('messageDiscarded');
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'user']);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map((message) => textOf(message))).toEqual(['?', 'Here.']);
  });

  it('L5: two empty answers in a row are an error', async () => {
    const model = scriptedModel([], []);
    await expect(createAgent({ model }).call('?')).rejects.toMatchObject({ code: 'emptyAnswer' });
    model.verify();
  });

  it('L7: again from postReasoning takes another counted iteration with ephemeral feedback', async () => {
    const model = scriptedModel([text('ugh')], [text('Fine.')]);
    const again = on(
      'postReasoning',
      map((event) => (textOf(event.message) === 'ugh' ? { ...event, again: 'Be polite.' } : event)),
    );
    const memory = inProcessMemory();
    const agent = createAgent({ model, use: [again] });
    const reply = await sessions(agent, { memory }).open('s').call('?');
    expect(reply).toMatchObject({ iterations: 2, reason: 'answer' });
    expect(model.requests[1]?.messages.map((message) => textOf(message))).toEqual([
      '?',
      'ugh',
      'Be polite.',
    ]);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map((message) => textOf(message))).toEqual(['?', 'Fine.']);
  });

  it('L7: text that cannot be read is fed back twice in a row, and prose is the answer after that', async () => {
    const bad = [text('Acton: clock'), { type: 'malformed', feedback: 'Write Action.' }] as const;
    const model = scriptedModel(bad, bad, bad);
    const reply = await createAgent({ model }).call('?', { limits: { parseBackoffMs: 0 } });
    expect(reply).toMatchObject({ reason: 'answer', iterations: 3 });
    expect(textOf(reply)).toBe('Acton: clock');
  });

  it('L7: feedback is shown once, and counts afresh after a message that was accepted', async () => {
    const bad = [text('?'), { type: 'malformed', feedback: 'Write Action.' }] as const;
    const model = scriptedModel(bad, bad, [toolCall('clock')], bad, bad, [text('noon')]);
    const reply = await createAgent({ model, tools: [clock] }).call('?', {
      limits: { parseBackoffMs: 0 },
    });
    expect(textOf(reply)).toBe('noon');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 3, 3, 5, 5]);
  });

  it('L7: a correction in the last iteration is followed by the closing call', async () => {
    const model = scriptedModel([text('x'), { type: 'malformed', feedback: 'no' }], [text('end')]);
    const reply = await createAgent({ model }).call('?', {
      limits: { maxIterations: 1, parseBackoffMs: 0 },
    });
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 1 });
  });

  it('L8: thousands of iterations of a synchronous model do not overflow the stack', async () => {
    // CI runs a share of them.
    const maxIterations = Math.ceil(10_000 * Number(process.env['MILLRACE_RUNS'] ?? 1));
    const agent = createAgent({ model: tireless, tools: [clock] });
    const reply = await agent.call('?', { limits: { ...unbounded.limits, maxIterations } });
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: maxIterations });
  });

  it('L8: nested and concurrent synchronous calls keep apart', async () => {
    const nested = tool({
      name: 'clock',
      description: 'Asks another agent.',
      run: () =>
        createAgent({ model: tireless, tools: [clock] })
          .call$('?', { limits: { ...unbounded.limits, maxIterations: 20 } })
          .pipe(map(textOf)),
    });
    const agent = createAgent({ model: tireless, tools: [nested] });
    const options = { limits: { ...unbounded.limits, maxIterations: 20 } };
    const replies = await Promise.all([agent.call('a', options), agent.call('b', options)]);
    expect(replies.map(({ iterations }) => iterations)).toEqual([20, 20]);
  });

  it('I18: a back-off of two hours takes no time in virtual time', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const patient = scriptedModel((_request, lent) =>
        timer(7_200_000, lent.scheduler).pipe(map(() => finish())),
      );
      const texts = on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: { ...event.message, content: [{ type: 'text' as const, text: 'late' }] },
        })),
      );
      const reply$ = createAgent({ model: patient, use: [texts] })
        .call$('?', { scheduler, limits: { timeouts: { callMs: 10_000_000 } } })
        .pipe(map(textOf));
      expectObservable(reply$).toBe('7200s (r|)', { r: 'late' });
      expect(model('f|').name).toBe('scripted');
    });
  });
});

describe('the limit of iterations', () => {
  it('L3: the default is ten reasoning calls, then one closing call without tools', async () => {
    const asks = Array.from({ length: 10 }, () => [toolCall('clock')]);
    const model = scriptedModel(...asks, [text('In short: noon.')]);
    const events = await record(createAgent({ model, tools: [clock] }).stream$('?'));
    expect(events.filter(({ type }) => type === 'preReasoning')).toHaveLength(10);
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(10);
    expect(events.slice(-4).map(({ type }) => type)).toEqual([
      'preSummary',
      'summaryChunk',
      'postSummary',
      'postCall',
    ]);
    expect(model.requests.at(-1)).toMatchObject({ toolChoice: 'none' });
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'maxIterations', iterations: 10 } });
    model.verify();
  });

  it('L3: a model without a choice of none is not shown the tools', async () => {
    const model = {
      ...scriptedModel([toolCall('clock')], [text('noon')]),
      unsupported: ['toolChoice'] as const,
    };
    await createAgent({ model, tools: [clock] }).call('?', { limits: { maxIterations: 1 } });
    expect(model.requests.map(({ tools }) => tools?.length)).toEqual([1, undefined]);
  });

  it('L3: tools that the closing message asks for are answered and not run', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel([toolCall('clock')], [text('noon'), toolCall('clock')]);
    const agent = createAgent({ model, tools: [clock] });
    const reply = await sessions(agent, { memory })
      .open('s')
      .call('?', { limits: { maxIterations: 1 } });
    expect(reply.toolCalls).toHaveLength(1);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
    expect(textOf(stored.at(-1) ?? reply)).toBe('noon');
  });

  it('L3: a closing call without text is an error', async () => {
    const model = scriptedModel([toolCall('clock')], []);
    await expect(
      createAgent({ model, tools: [clock] }).call('?', { limits: { maxIterations: 1 } }),
    ).rejects.toMatchObject({ code: 'maxIterations' });
  });

  it("L3: onLimit 'error' errors, and leaves what has been stored", async () => {
    const memory = inProcessMemory();
    const model = scriptedModel([toolCall('clock')]);
    const session = sessions(createAgent({ model, tools: [clock] }), { memory }).open('s');
    const call = session.call('?', { limits: { maxIterations: 1, onLimit: 'error' } });
    await expect(call).rejects.toMatchObject({ code: 'maxIterations' });
    expect(await lastValueFrom(memory('s').load$())).toHaveLength(3);
  });

  it("L3: onLimit 'partial' replies with what the assistant said last", async () => {
    const model = scriptedModel([text('Let me see.'), toolCall('clock')]);
    const reply = await createAgent({ model, tools: [clock] }).call('?', {
      limits: { maxIterations: 1, onLimit: 'partial' },
    });
    expect([reply.reason, textOf(reply)]).toEqual(['maxIterations', 'Let me see.']);
  });
});

describe('a reply that was said before', () => {
  const textsIn = async (options: Partial<AgentOptions>, limits: CallOptions) => {
    const memory = inProcessMemory();
    const model = scriptedModel([text('Let me see.'), toolCall('clock')], [text('Again.')]);
    const agent = createAgent({ model, tools: [clock], ...options });
    const session = sessions(agent, { memory }).open('s');
    const reply = await session.call('?', limits);
    const stored = await lastValueFrom(memory('s').load$());
    await session.call('And?');
    expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual([
      ...stored.map(({ role }) => role),
      'user',
    ]);
    return [textOf(reply), ...stored.filter(({ role }) => role === 'assistant').map(textOf)];
  };
  const stop = (type: 'postReasoning' | 'postActing') =>
    on(type, (event$) => event$.pipe(map((event) => ({ ...event, stop: true }))));
  const shout = on(
    'postCall',
    map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock('LET!')] } })),
  );
  const partial = { limits: { maxIterations: 1, onLimit: 'partial' } } as const;

  it.each<[string, Partial<AgentOptions>, CallOptions]>([
    ["onLimit: 'partial'", {}, partial],
    ['a stop at postReasoning', { use: [stop('postReasoning')] }, {}],
    ['a stop at postActing', { use: [stop('postActing')] }, {}],
  ])('L10: is stored once with %s', async (_, options, limits) => {
    expect(await textsIn(options, limits)).toEqual(['Let me see.', 'Let me see.']);
  });

  it('L10, I11: is stored as it is edited at postCall', async () => {
    const stored = await textsIn({ use: [shout] }, partial);
    expect(stored).toEqual(['LET!', 'Let me see.', 'LET!']);
  });
});

describe('assembly of a request', () => {
  it('R1: instructions are the system prompt; history comes before the input', async () => {
    const model = scriptedModel([text('one')], [text('two')]);
    const session = sessions(
      createAgent({
        model,
        instructions: ({ agent }) => `You are ${agent.join()}.`,
        name: 'Ada',
      }),
    ).open('s');
    await session.call('first');
    await session.call('second');
    expect(model.requests[1]?.system).toBe('You are Ada.');
    expect(model.requests[1]?.messages.map((message) => textOf(message))).toEqual([
      'first',
      'one',
      'second',
    ]);
  });

  it('R5: a call overrides its agent, and an agent the defaults', async () => {
    const other = scriptedModel([text('other')]);
    const agent = createAgent({
      model: scriptedModel(),
      request: { temperature: 0.2, maxTokens: 5 },
    });
    await agent.call('?', {
      model: other,
      request: { temperature: 0.9 },
      tools: [clock],
      metadata: { user: 'u' },
    });
    expect(other.requests[0]).toMatchObject({
      temperature: 0.9,
      maxTokens: 5,
      tools: [{ name: 'clock' }],
    });
    expect(other.requests[0]).not.toHaveProperty('metadata');
  });

  it('R5: a toolChoice that names no tool of the call is refused before anything is sent', async () => {
    const model = scriptedModel();
    const call = createAgent({ model, tools: [clock] }).call('?', {
      request: { toolChoice: { name: 'glock' } },
    });
    await expect(call).rejects.toMatchObject({
      code: 'config',
      message: "'toolChoice' names the tool 'glock'. The tools are: clock.",
    });
  });

  it('R5: a forcing toolChoice covers the first request only', async () => {
    const model = scriptedModel([toolCall('clock')], [text('noon')]);
    await createAgent({ model, tools: [clock] }).call('?', { request: { toolChoice: 'required' } });
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual(['required', undefined]);
  });

  it('R5: an option that the model cannot take is dropped with a warning', async () => {
    const model = { ...scriptedModel([text('hi')]), unsupported: ['temperature'] as const };
    const events = await record(
      createAgent({ model }).stream$('?', { request: { temperature: 1 } }),
    );
    expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
    expect(model.requests[0]).not.toHaveProperty('temperature');
  });

  it('I8: feedback and the closing instruction are never stored', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel([text('')], [toolCall('clock')], [text('end')]);
    const session = sessions(createAgent({ model, tools: [clock] }), { memory }).open('s');
    await session.call('?', { limits: { maxIterations: 2 } });
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.filter(({ role }) => role === 'user')).toHaveLength(1);
  });

  it('I10: what a model throws is a typed error with its cause', async () => {
    const cause = new Error('503');
    const model = scriptedModel(() => {
      throw cause;
    });
    const events$ = createAgent({ model }).stream$('?');
    await expect(firstValueFrom(events$.pipe(only('postCall')))).rejects.toMatchObject({
      name: 'MillraceError',
      code: 'unknown',
      cause,
    });
  });

  it('X1: a stream that ends without a finish is an incomplete answer, its text kept apart', async () => {
    const model = scriptedModel(of(text('Half an ans')));
    await expect(createAgent({ model }).call('?')).rejects.toMatchObject({
      code: 'invalidResponse',
      partial: 'Half an ans',
    });
  });
});

describe('tool calls of a message that is not whole', () => {
  it.each<[string, Observable<ModelChunk>, string]>([
    ['was cut at its length', from([toolCall('spy'), finish('length')]), 'truncated'],
    ['was refused', from([toolCall('spy'), finish('refusal')]), 'refused'],
    ['was filtered', from([toolCall('spy'), finish('filtered')]), 'refused'],
    ['lacks its end', of(toolCall('spy')), 'invalidResponse'],
    ['ends in the middle of arguments', of(halfToolCall), 'invalidResponse'],
    [
      'broke off',
      concat(
        of(toolCall('spy')),
        throwError(() => new MillraceError('connection', 'reset')),
      ),
      'connection',
    ],
  ])('X2: never run if it %s', async (_, answer$, ending) => {
    let runs = 0;
    const spy = tool({ name: 'spy', description: 'Spies.', run: () => (runs += 1) });
    const memory = inProcessMemory();
    const agent = createAgent({ model: scriptedModel(answer$), tools: [spy] });
    const reason$ = sessions(agent, { memory })
      .open('s')
      .call$('?')
      .pipe(
        map(({ reason }): string => reason),
        catchError((error: MillraceError) => of(error.code)),
      );
    expect(await lastValueFrom(reason$)).toBe(ending);
    expect(runs).toBe(0);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.flatMap(({ content }) => content.map(({ type }) => type))).not.toContain(
      'tool_call',
    );
  });
});

describe('ends that tools and interceptors make', () => {
  it('T6: a final answer of a tool ends the loop, its siblings stored', async () => {
    const memory = inProcessMemory();
    const final = tool({
      name: 'final',
      description: 'Answers.',
      run: () => toolOutput({ content: 'It is noon.', finalAnswer: true }),
    });
    const model = scriptedModel([toolCall('final'), toolCall('clock')]);
    const session = sessions(createAgent({ model, tools: [clock, final] }), { memory }).open('s');
    const reply = await session.call('?');
    expect([reply.reason, textOf(reply)]).toEqual(['toolFinal', 'It is noon.']);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(({ content }) => content.length)).toEqual([1, 2, 2, 1]);
  });

  it('I11: one stop at postActing stops the call after the whole batch', async () => {
    const stop = on(
      'postActing',
      map((event) => ({ ...event, stop: event.toolCall.input['stop'] === true })),
    );
    const model = scriptedModel([toolCall('clock', { stop: true }), toolCall('clock')]);
    const agent = createAgent({ model, tools: [clock], use: [stop] });
    expect(await agent.call('?')).toMatchObject({ reason: 'stopped', toolCalls: [{}, {}] });
  });

  it('I11: a stop at postReasoning answers the tools without running them', async () => {
    const uses: ToolCallBlock[] = [];
    const spy = tool({
      name: 'spy',
      description: 'Spies.',
      run: (_input, { toolCallId }) =>
        uses.push({ type: 'tool_call', id: toolCallId, name: 'spy', input: {} }),
    });
    const stop = on(
      'postReasoning',
      map((event) => ({ ...event, stop: true })),
    );
    const model = scriptedModel([text('I will spy.'), toolCall('spy')]);
    const agent = createAgent({ model, tools: [spy], use: [stop] });
    const events = await record(agent.stream$('?'));
    expect(uses).toEqual([]);
    expect(events.filter(({ type }) => type.endsWith('Acting'))).toHaveLength(2);
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'stopped' } });
  });

  it('S6: every step goes through the journal under its position', async () => {
    const ids: string[] = [];
    const durable = journal((id, work) => {
      ids.push(id);
      return work();
    });
    const model = scriptedModel([toolCall('clock'), toolCall('clock')], [text('noon')]);
    await createAgent({ model, tools: [clock], use: [durable] }).call('?', { callId: 'c' });
    // Tools run side by side: each in its order, both before the next message.
    const without = (tool: string) => ids.filter((id) => !id.startsWith(`c/1/${tool}`));
    const around = (tool: string) =>
      ['call', 'open', '1', `1/${tool}/intent`, `1/${tool}`, '2', 'reply'].map((id) => `c/${id}`);
    expect([without('1'), without('0')]).toEqual([around('0'), around('1')]);
  });

  it('I5: unsubscribing between synchronous turns stops them immediately', async () => {
    const requests: number[] = [];
    const model: Model = {
      name: 'm',
      stream$: (request) => {
        requests.push(request.messages.length);
        return from([toolCall('clock'), finish()]);
      },
    };
    const agent = createAgent({ model, tools: [clock] });
    await firstValueFrom(agent.stream$('?', unbounded).pipe(only('postActing')));
    expect(requests).toEqual([1]);
  });
});
