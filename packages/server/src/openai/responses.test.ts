import { afterEach, describe, expect, it } from '@jest/globals';
import { MillraceError, on, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, text, thinking, toolCall } from 'millrace/testing';
import type OpenAI from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { firstValueFrom, map, throwError } from 'rxjs';
import { clientOf, closeServers, held, post, serving, weather } from './client-of.test-support.js';

afterEach(closeServers);

const model = 'helper';
const usage = {
  type: 'usage',
  usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 3 },
} as const;

const read = async (stream: AsyncIterable<ResponseStreamEvent>) => {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
};
const create = (client: OpenAI, input: string, more: object = {}): Promise<Response> =>
  client.responses.create({ model, input, ...more });
const streamed = async (client: OpenAI, input: string, more: object = {}) =>
  read(await client.responses.create({ model, input, stream: true, ...more }));
const reread = async (client: OpenAI, id: string, after?: number) =>
  read(
    await client.responses.retrieve(id, {
      stream: true,
      ...(after !== undefined && { starting_after: after }),
    }),
  );
const deltasIn = (events: readonly ResponseStreamEvent[]): string =>
  events.map((it) => (it.type === 'response.output_text.delta' ? it.delta : '')).join('');
const last = (events: readonly ResponseStreamEvent[]): Response => {
  const end = events.at(-1);
  if (end === undefined || !('response' in end)) throw new Error('There is no end.');
  return end.response;
};
const textsIn = ({ output }: Response): readonly string[] =>
  output.flatMap((item) =>
    item.type === 'message'
      ? [item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('')]
      : [],
  );
const tools = [{ type: 'function', strict: false, ...weather }];

/** Replaces the first message of a call. */
const again = on(
  'postReasoning',
  map((event) => (event.iteration === 1 ? { ...event, again: 'Better!' } : event)),
);

const isRising = (events: readonly ResponseStreamEvent[]): boolean =>
  events.every(
    ({ sequence_number }, at) => sequence_number > (events[at - 1]?.sequence_number ?? -1),
  );

describe('a response', () => {
  it('is complete, and echoes its request', async () => {
    const { client, model: asked } = serving([[thinking('Hm.'), text('Hello.'), usage]], {
      instructions: 'Be brief.',
    });
    const response = await client.responses.create({
      model,
      instructions: 'Be kind.',
      input: 'Hi',
      temperature: 0.5,
      max_output_tokens: 100,
      metadata: { of: 'a test' },
    });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      output_text: 'Hello.',
      instructions: 'Be kind.',
      temperature: 0.5,
      max_output_tokens: 100,
      metadata: { of: 'a test' },
      conversation: { id: expect.stringMatching(/^conv_/) },
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
        { type: 'message', status: 'completed', content: [{ type: 'output_text' }] },
      ],
      usage: { input_tokens: 13, output_tokens: 5, total_tokens: 18 },
    });
    expect(asked.requests[0]).toMatchObject({
      system: 'Be brief.\n\nBe kind.',
      temperature: 0.5,
      maxTokens: 100,
    });
    expect(await client.responses.retrieve(response.id)).toEqual(response);
  });

  it.each([
    [100, 50],
    [20, 20],
  ])('asks for no more tokens than the agent allows: %d', async (max_output_tokens, expected) => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const request = { maxTokens: 50 };
    const { answer } = held();
    const first = serving([answer], { request }, { store });
    const { id } = await create(first.client, 'Hi', { max_output_tokens, background: true });
    await first.client.responses.retrieve(id);
    expect(first.model.requests[0]?.maxTokens).toBe(expected);
    await first.server.close({ timeoutMs: 0 });
    // The next server asks for no more, either.
    const second = serving([[text('Hello.')]], { request }, { store });
    await reread(second.client, id);
    expect(second.model.requests[0]?.maxTokens).toBe(expected);
  });

  it('streams all events, with numbers that are the same when it is read again', async () => {
    const { client } = serving([[thinking('Hm.'), text('Hel'), text('lo.'), usage]]);
    const events = await streamed(client, 'Hi', { metadata: { a: 'b' } });
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(isRising(events)).toBe(true);
    const { id, output } = last(events);
    expect(await reread(client, id)).toEqual(events);
    expect(await reread(client, id, events[9]?.sequence_number)).toEqual(events.slice(10));
    expect(events[0]).toMatchObject({ response: { id, metadata: { a: 'b' }, output: [] } });
    const items = events.flatMap((it) =>
      it.type === 'response.output_item.done' ? [it.item] : [],
    );
    expect(items).toEqual(output);
  });

  it("ends with the same response in the SDK's accumulator", async () => {
    const answer = [thinking('Hm.'), text('Hel'), text('lo.')];
    const { client } = serving([answer]);
    const stream = client.responses.stream({ model, input: 'Hi' });
    const numbers: number[] = [];
    stream.on('event', ({ sequence_number }) => numbers.push(sequence_number));
    const { id, output_text } = await stream.finalResponse();
    expect(output_text).toBe('Hello.');
    const again = client.responses.stream({
      response_id: id,
      starting_after: numbers[10] ?? 0,
    });
    const seen: number[] = [];
    again.on('event', ({ sequence_number }) => seen.push(sequence_number));
    expect((await again.finalResponse()).output_text).toBe('Hello.');
    expect(seen).toEqual(numbers.slice(11));
  });

  it('reports why it is incomplete, or has failed', async () => {
    const secret = new MillraceError('rateLimited', 'secret');
    const { client, errors } = serving([
      [text('Once'), finish('length')],
      [text('No.'), finish('filtered')],
      () => throwError(() => secret),
    ]);
    expect(await create(client, '?')).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output_text: 'Once',
    });
    expect(last(await streamed(client, '?'))).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
    });
    const events = await streamed(client, '?');
    expect(events.at(-1)?.type).toBe('response.failed');
    expect(await client.responses.retrieve(last(events).id)).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: expect.not.stringContaining('secret') },
    });
    expect(errors).toEqual(['rateLimited']);
  });

  it('returns JSON for a schema', async () => {
    const { client, model: asked } = serving([[text('Here: {"city":"Oslo"}')]]);
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const events = await streamed(client, 'Where?', {
      text: { format: { type: 'json_schema', name: 'place', schema } },
    });
    expect([deltasIn(events), textsIn(last(events))]).toEqual([
      '{"city":"Oslo"}',
      ['{"city":"Oslo"}'],
    ]);
    expect(asked.requests[0]?.outputSchema).toEqual(schema);
  });

  it('shows the tools of the agent as calls of a server', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'rain' });
    const fails = tool({ name: 'fails', description: 'Fails.', run: () => throwError(() => 'x') });
    const { client } = serving(
      [
        [text('Let me see.'), toolCall('look'), toolCall('fails'), finish()],
        [text('It rains.')],
        [text('Yes.')],
      ],
      { tools: [look, fails] },
    );
    const events = await streamed(client, 'Weather?');
    const types = events.map(({ type }) => type.replace('response.', ''));
    expect(types).toContain('mcp_call.completed');
    expect(types).toContain('mcp_call.failed');
    const { id, output } = last(events);
    expect(output).toMatchObject([
      { type: 'message', content: [{ text: 'Let me see.' }] },
      { type: 'mcp_call', name: 'look', server_label: model, arguments: '{}', output: 'rain' },
      { type: 'mcp_call', name: 'fails', output: null, error: 'The tool failed.' },
      { type: 'message', content: [{ text: 'It rains.' }] },
    ]);
    expect(
      (await client.responses.stream({ response_id: id }).finalResponse()).output,
    ).toHaveLength(4);
    // A client may bring all of it again.
    const whole = [
      { role: 'user', content: 'Weather?' },
      ...output,
      { role: 'user', content: '?' },
    ];
    expect((await create(client, whole as never)).output_text).toBe('Yes.');
  });
});

describe('a conversation of responses', () => {
  it('continues after a response, without its instructions', async () => {
    const { client, model: asked } = serving([[text('Hello Ann.')], [text('You are Ann.')]]);
    const first = await create(client, 'I am Ann.', { instructions: 'Be kind.' });
    const second = await create(client, 'Who am I?', { previous_response_id: first.id });
    expect(second).toMatchObject({
      output_text: 'You are Ann.',
      previous_response_id: first.id,
      conversation: first.conversation,
    });
    expect(asked.requests[1]?.messages).toHaveLength(3);
    expect(asked.requests[1]?.system).toBeUndefined();
  });

  it('forks at a response that is not the last one', async () => {
    const {
      client,
      server,
      model: asked,
    } = serving([[text('One.')], [text('Two.')], [text('Other.')], [text('Another.')]]);
    const first = await create(client, '1?');
    const second = await create(client, '2?', { previous_response_id: first.id });
    const [fork, other] = await Promise.all(
      ['3?', '4?'].map((question) => create(client, question, { previous_response_id: first.id })),
    );
    expect(asked.requests.slice(2).map(({ messages }) => messages.length)).toEqual([3, 3]);
    const ids = [first, second, fork, other].map((it) => it?.conversation?.id);
    expect(new Set(ids).size).toBe(1);
    const path = `/api/chat/${ids[0] ?? ''}`;
    const at = `?at=${fork?.id.replace('resp_', '') ?? ''}`;
    for (const [query, said] of [['', 'Two.'] as const, [at, 'her.'] as const]) {
      const history = await server.respond(new Request(`http://localhost${path}${query}`));
      const body = JSON.stringify(await history.json());
      expect(body).toContain('One.');
      expect(['Two.', 'her.'].filter((text) => body.includes(text))).toEqual([said]);
    }
  });

  it('of two that continue the same response at the same time, each has a branch', async () => {
    const { client, model: asked } = serving([[text('One.')], [text('Two.')], [text('Three.')]]);
    const first = await create(client, '1?');
    const both = await Promise.all(
      ['2?', '3?'].map((question) => create(client, question, { previous_response_id: first.id })),
    );
    expect(new Set(both.map((it) => it.conversation?.id)).size).toBe(1);
    expect(asked.requests.slice(1).map(({ messages }) => messages.length)).toEqual([3, 3]);
  });

  it('has an id of the client, and is that of the other protocols', async () => {
    const { client, server, model: asked } = serving([[text('One.')], [text('Two.')]]);
    await create(client, '1?', { conversation: 'chat-1' });
    const { conversation } = await create(client, '2?', { conversation: { id: 'chat-1' } });
    expect(conversation).toEqual({ id: 'chat-1' });
    expect(asked.requests[1]?.messages).toHaveLength(3);
    const history = await server.respond(new Request('http://localhost/api/chat/chat-1'));
    expect(JSON.stringify(await history.json())).toMatch(/1\?.*One\..*2\?.*Two\./);
  });

  it('begins with the messages of the input', async () => {
    const { client, server, model: asked } = serving([[text('Ann.')], [text('Yes.')]]);
    const { id, conversation } = await client.responses.create({
      model,
      input: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'I am Ann.' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'user', content: [{ type: 'input_text', text: 'Who am I?' }] },
      ],
    });
    expect(asked.requests[0]).toMatchObject({ system: 'Be kind.', messages: { length: 3 } });
    await create(client, 'Sure?', { previous_response_id: id });
    expect(asked.requests[1]?.messages).toHaveLength(5);
    const history = await server.respond(
      new Request(`http://localhost/api/chat/${conversation?.id ?? ''}`),
    );
    const { messages } = (await history.json()) as { messages: { role: string }[] };
    expect(messages.map(({ role }) => role).join()).toBe(
      'user,assistant,user,assistant,user,assistant',
    );
  });

  it('lets the client run its own tools', async () => {
    const { client, model: asked } = serving([
      [toolCall('weather', { city: 'Oslo' }, 'call_1'), finish()],
      [text('Rain.')],
      [text('Rain again.')],
    ]);
    const events = await streamed(client, 'Weather?', { tools });
    const first = last(events);
    expect(first.output).toMatchObject([
      { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
    ]);
    expect(events.map(({ type }) => type)).toContain('response.function_call_arguments.done');
    const result = {
      type: 'function_call_output' as const,
      call_id: 'call_1',
      output: 'It rains.',
    };
    const second = await client.responses.create({
      model,
      previous_response_id: first.id,
      input: [result],
    });
    expect(second).toMatchObject({ output_text: 'Rain.', conversation: first.conversation });
    expect(asked.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ toolCallId: 'call_1', content: [{ text: 'It rains.' }] }],
    });
    // The same without what the server keeps.
    const stateless = await client.responses.create({
      model,
      store: false,
      input: [{ role: 'user', content: 'Weather?' }, ...(first.output as never[]), result],
    });
    expect(stateless.output_text).toBe('Rain again.');
    await expect(client.responses.retrieve(stateless.id)).rejects.toMatchObject({ status: 404 });
  });

  it('waits for the results of its tools: nothing begins without them', async () => {
    const sessions = inProcessSessions();
    const store = { calls: createCallStore(inProcessCalls()), sessions };
    const { client, model: asked } = serving(
      [[toolCall('weather', {}, 'call_1'), finish()], [text('Rain.')], [text('Yes.')]],
      {},
      { store },
    );
    const first = await create(client, 'Weather?', { tools });
    const next = (previous_response_id: string, ...input: object[]) =>
      create(client, '', { previous_response_id, input });
    const output = { type: 'function_call_output', output: 'Rain.' };
    const question = { role: 'user', content: 'Hello?' };
    const own = { ...output, call_id: 'call_1' };
    const other = { ...output, call_id: 'call_2' };
    const areRefused = async () => {
      for (const input of [[question], [other], [own, other]]) {
        await expect(next(first.id, ...input)).rejects.toMatchObject({ status: 400 });
      }
    };
    await areRefused();
    const second = await next(first.id, own);
    await areRefused();
    await expect(next(second.id, own)).rejects.toMatchObject({ status: 400 });
    expect((await firstValueFrom(sessions.find$())).length).toBe(1);
    expect(asked.requests).toHaveLength(2);
    // Its client did not get the response.
    expect(await next(first.id, own)).toMatchObject({ id: second.id, output_text: 'Rain.' });
    await expect(next(first.id, { ...own, output: 'Sun.' })).rejects.toMatchObject({ status: 409 });
    expect((await firstValueFrom(sessions.find$())).length).toBe(1);
    expect((await next(second.id, question)).output_text).toBe('Yes.');
  });

  it('belongs to its user', async () => {
    const { client, server } = serving(
      [[text('One.')], [text('Two.')]],
      {},
      { user: ({ headers }) => headers.get('authorization')?.replace('Bearer ', '') },
    );
    const eve = clientOf(server, 'eve');
    const { id } = await create(client, '1?', { conversation: 'chat' });
    const failed = { status: 404, code: 'not_found' };
    await expect(eve.responses.retrieve(id)).rejects.toMatchObject(failed);
    await expect(reread(eve, id)).rejects.toMatchObject(failed);
    await expect(eve.responses.cancel(id)).rejects.toMatchObject(failed);
    await expect(create(eve, '?', { previous_response_id: id })).rejects.toMatchObject({
      ...failed,
      param: 'previous_response_id',
    });
    await create(eve, '?', { conversation: 'chat' });
    expect(textsIn(await client.responses.retrieve(id))).toEqual(['One.']);
  });
});

describe('a message that is discarded', () => {
  it('is closed as incomplete in a stream, and the response ends without it', async () => {
    const { client } = serving([[text('Bad.')], [text('Good.')]], { use: [again] });
    const events = await streamed(client, '?');
    expect(deltasIn(events)).toBe('Bad.Good.');
    const items = events.flatMap((it) => (it.type === 'response.output_item.done' ? [it] : []));
    expect(items).toMatchObject([
      { output_index: 0, item: { status: 'incomplete', content: [] } },
      { output_index: 1, item: { status: 'completed', content: [{ text: 'Good.' }] } },
    ]);
    expect(textsIn(last(events))).toEqual(['Good.']);

    const later = await reread(client, last(events).id);
    expect(deltasIn(later)).toBe('Good.');
    expect(isRising(events)).toBe(true);
    expect(events).toEqual(expect.arrayContaining(later));
    expect(textsIn(await client.responses.retrieve(last(events).id))).toEqual(['Good.']);
  });

  it('keeps the next attempt complete, even one of another server', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const { answer, say } = held();
    const first = serving([answer], {}, { store });
    const { id } = await create(first.client, '?', { background: true });
    say('Broken');
    for await (const event of await first.client.responses.retrieve(id, { stream: true })) {
      if (event.type === 'response.output_text.delta') break;
    }
    await first.server.close({ timeoutMs: 0 });
    const restart = { type: 'restart', why: 'lost' } as const;
    const { client } = serving([[text('Bad.'), restart, text('Good.')]], {}, { store });
    const events = await reread(client, id);
    expect(textsIn(last(events))).toEqual(['Good.']);
    const later = await reread(client, id);
    expect([deltasIn(later), textsIn(last(later))]).toEqual(['Good.', ['Good.']]);
    expect(last(later).output).toHaveLength(1);
  });

  it("is neither in the response of the SDK's accumulator nor in a complete response", async () => {
    const answers = [[text('Bad.')], [text('Good.')]];
    const { client } = serving([...answers, ...answers], { use: [again] });
    const stream = client.responses.stream({ model, input: '?' });
    const { output_text, id } = await stream.finalResponse();
    expect(output_text).toBe('Good.');
    const joined = client.responses.stream({ response_id: id });
    const snapshots: string[] = [];
    joined.on('response.output_text.delta', ({ snapshot }) => snapshots.push(snapshot));
    expect((await joined.finalResponse()).output_text).toBe('Good.');
    expect(snapshots).toEqual(['Good.']);
    expect(textsIn(await create(client, '?'))).toEqual(['Good.']);
  });
});

describe('a response in the background', () => {
  it('continues without a client, and can be read from any event', async () => {
    const { answer, say, end } = held();
    const { client } = serving([answer], {}, { onDisconnect: 'abort' });
    const { id, status, metadata } = await create(client, '?', {
      background: true,
      metadata: { a: 'b' },
    });
    expect([status, metadata]).toEqual(['in_progress', { a: 'b' }]);
    say('Once ');
    const first: ResponseStreamEvent[] = [];
    for await (const event of await client.responses.retrieve(id, { stream: true })) {
      first.push(event);
      if (event.type === 'response.output_text.delta') break;
    }
    expect((await client.responses.retrieve(id)).status).toBe('in_progress');
    say('more.');
    end();
    const rest = await reread(client, id, first.at(-1)?.sequence_number);
    expect(deltasIn([...first, ...rest])).toBe('Once more.');
    expect(await client.responses.retrieve(id)).toMatchObject({
      status: 'completed',
      output_text: 'Once more.',
      background: true,
    });
  });

  it('waits for the one before it in its conversation, and is cancelled alone', async () => {
    const { answer, say, end } = held();
    const { client } = serving([answer, [text('Two.')]]);
    const more = { background: true, conversation: 'chat' };
    const first = await create(client, '1?', more);
    const second = await create(client, '2?', more);
    const third = await create(client, '3?', more);
    expect([second.status, third.status]).toEqual(['queued', 'queued']);
    expect((await client.responses.cancel(second.id)).status).toBe('cancelled');
    say('One.');
    end();
    expect(textsIn(last(await reread(client, first.id)))).toEqual(['One.']);
    expect(textsIn(last(await reread(client, third.id)))).toEqual(['Two.']);
  });

  it('is cancelled: the text so far stays', async () => {
    const { answer, say } = held();
    const { client } = serving([answer]);
    const { id } = await create(client, '?', { background: true });
    say('Once');
    for await (const event of await client.responses.retrieve(id, { stream: true })) {
      if (event.type === 'response.output_text.delta') break;
    }
    const cancelled = await client.responses.cancel(id);
    expect([cancelled.status, textsIn(cancelled)]).toEqual(['cancelled', ['Once']]);
    expect(await client.responses.retrieve(id)).toEqual({ ...cancelled, output_text: 'Once' });
    expect(last(await reread(client, id)).status).toBe('cancelled');
    expect((await client.responses.cancel(id)).status).toBe('cancelled');
  });

  it('is not continued before its end', async () => {
    const { answer } = held();
    const { client } = serving([answer]);
    const { id } = await create(client, '?', { background: true });
    await expect(create(client, '!', { previous_response_id: id })).rejects.toMatchObject({
      status: 409,
    });
  });
});

it.each(['__proto__', 'constructor', 'prototype'])(
  'a response keeps a conversation with %s in arguments, without that key',
  async (key) => {
    const { client, server, model: asked, errors } = serving([[text('Yes.')], [text('Sure.')]]);
    const json = `{"${key}":{"x":1,"prototype":{}},"y":2}`;
    const call = { type: 'function_call', call_id: 'a', name: 't', arguments: json };
    const output = { type: 'function_call_output', call_id: 'a', output: json };
    const body = JSON.stringify({ input: [{ role: 'user', content: '?' }, call, output] });
    const response = await post(server, '/responses', body);
    const { id } = (await response.json()) as Response;
    expect([response.status, errors]).toEqual([200, []]);
    expect((await create(client, '?', { previous_response_id: id })).output_text).toBe('Sure.');
    const [, made] = asked.requests[1]?.messages ?? [];
    const input = key === 'prototype' ? { y: 2, prototype: expect.anything() } : { y: 2 };
    expect(made?.content).toMatchObject([{ type: 'tool_call', input }]);
    expect(Object.keys(JSON.parse(JSON.stringify(made)).content[0].input)).toHaveLength(
      key === 'prototype' ? 2 : 1,
    );
  },
);

describe('a request for a response that is refused', () => {
  const user = { role: 'user', content: '?' };
  it.each<[string, unknown, string | null]>([
    ['no object', 1, null],
    ['no input', {}, 'input'],
    ['an empty input', { input: '' }, null],
    ['an input that is no list', { input: { length: 1 } }, 'input'],
    ['an unknown item', { input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].type'],
    ['an unknown role', { input: [{ role: 'root', content: 'x' }] }, 'input[0].role'],
    [
      'a result without an id',
      { input: [{ type: 'function_call_output', output: 'x' }] },
      'input[0]',
    ],
    [
      'a result without its call',
      { input: [{ type: 'function_call_output', call_id: 'a', output: 'x' }] },
      null,
    ],
    [
      'a file of the vendor',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'x' }] }] },
      'input[0].content',
    ],
    ['instructions', { input: [user], instructions: 1 }, 'instructions'],
    ['metadata', { input: [user], metadata: { a: 1 } }, 'metadata'],
    ['a prompt', { input: [user], prompt: { id: 'x' } }, 'prompt'],
    ['a tool of the vendor', { input: [user], tools: [{ type: 'web_search' }] }, 'tools'],
    ['a form', { input: [user], text: { format: { type: 'xml' } } }, 'text.format'],
    ['a conversation', { input: [user], conversation: '../x' }, 'conversation'],
    ['no conversation', { input: [user], conversation: { id: 1 } }, 'conversation'],
    [
      'a conversation beside a response',
      { input: [user], conversation: 'a', previous_response_id: 'resp_a' },
      'conversation',
    ],
    ['background without store', { input: [user], background: true, store: false }, 'store'],
  ])('%s', async (_what, body, param) => {
    const { server, model: asked } = serving([[text('x')]]);
    const response = await post(server, '/responses', JSON.stringify(body));
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { type: 'invalid_request_error', message: expect.any(String), param } },
    ]);
    expect(asked.requests).toEqual([]);
  });

  it('names a response that does not exist', async () => {
    const { client, server } = serving([]);
    for (const id of ['resp_x', 'x', 'resp_constructor']) {
      await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
      await expect(client.responses.cancel(id)).rejects.toMatchObject({ status: 404 });
      const body = JSON.stringify({ input: '?', previous_response_id: id });
      expect((await post(server, '/responses', body)).status).toBe(404);
    }
    const after = 'http://localhost/v1/responses/resp_x?stream=true&starting_after=x';
    expect((await server.respond(new Request(after))).status).toBe(400);
  });
});

it('a call of another protocol can be read as a response', async () => {
  const { client, server } = serving([[text('Hello.')]]);
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }];
  const stream = await server.respond(
    new Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'chat', messages }),
    }),
  );
  const [, callId = ''] = /^id: (\w+):/u.exec(await stream.text()) ?? [];
  expect(await client.responses.retrieve(`resp_${callId}`)).toMatchObject({
    status: 'completed',
    output_text: 'Hello.',
    conversation: { id: 'chat' },
  });
});
