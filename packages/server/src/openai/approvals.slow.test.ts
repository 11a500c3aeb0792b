import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { cost } from 'millrace/traffic';
import OpenAI from 'openai';
import type {
  Response,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import {
  firstValueFrom,
  lastValueFrom,
  of,
  ReplaySubject,
  shareReplay,
  Subject,
  take,
  takeUntil,
} from 'rxjs';
import { queueOf, waiting } from '../approvals/asking.test-support.js';
import { serve, type ServeOptions } from '../node/serve.js';
import { openAi } from './index.js';

const model = 'helper';
const over$ = new Subject<void>();
afterEach(() => {
  over$.next();
});

const input = jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } });

/** A server with tools that wait for approval, on a free port of this machine. */
const paying = async (answers: readonly ScriptedAnswer[], options: ServeOptions = {}) => {
  const approvals = queueOf();
  const paid: unknown[] = [];
  const run = (given: unknown) => {
    paid.push(given);
    return 'Paid.';
  };
  const released$ = new ReplaySubject<string>(1);
  const pay = requireApproval(
    tool({ name: 'pay', description: 'Pays.', input, run }),
    approvals.approve,
  );
  const tools = [
    pay,
    { ...requireApproval(pay, approvals.approve), name: 'twice' },
    { ...pay, name: 'alone', exclusive: true },
    requireApproval(tool({ name: 'lawful', description: 'Has a rule.', run }), () => of(true)),
    requireApproval(
      tool({ name: 'slowly', description: 'Waits.', run: () => released$.pipe(take(1)) }),
      approvals.approve,
    ),
    tool({ name: 'slow', description: 'Waits.', run: () => released$.pipe(take(1)) }),
  ];
  const asked = scriptedModel(...answers);
  const use = [cost({ currency: 'USD', date: '2026-11-30', prices: { '*': price } })];
  const agent = createAgent({ name: model, model: asked, tools, use, limits: { parallel: 100 } });
  const served$ = serve(agent, {
    ...{ port: 0, signals: [], closeMs: 0, approvals, protocols: [openAi()] },
    ...options,
  }).pipe(takeUntil(over$), shareReplay({ bufferSize: 1, refCount: false }));
  const { url, close$ } = await firstValueFrom(served$);
  const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  const close = () => lastValueFrom(close$, { defaultValue: undefined });
  return { client: clientOf('none'), clientOf, url, close, paid, approvals, released$, asked };
};

const create = (client: OpenAI, more: object = {}): Promise<Response> =>
  client.responses.create({ model, input: 'Pay.', ...more });

type Request = ResponseOutputItem.McpApprovalRequest;
const requestsIn = ({ output }: Response): readonly Request[] =>
  output.filter((item) => item.type === 'mcp_approval_request');
const callsIn = ({ output }: Response) => output.filter((item) => item.type === 'mcp_call');

const verdict = (
  request: Request | undefined,
  approve = true,
  reason?: string,
): ResponseInputItem.McpApprovalResponse => ({
  type: 'mcp_approval_response',
  approval_request_id: request?.id ?? '',
  approve,
  ...(reason !== undefined && { reason }),
});

/** Answers the first requests of a response. */
const answer = (client: OpenAI, response: Response, ...approved: readonly boolean[]) => {
  const requests = requestsIn(response);
  return create(client, {
    previous_response_id: response.id,
    input: approved.map((approve, at) => verdict(requests[at], approve)),
  });
};

const read = async (stream: AsyncIterable<ResponseStreamEvent>) => {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
};
const last = (events: readonly ResponseStreamEvent[]): Response => {
  const end = events.at(-1);
  if (end?.type !== 'response.completed') throw new Error('It is not completed.');
  return end.response;
};

const price = { input: 1, output: 1 };
const usage = { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } } as const;
const pays = [text('Let me pay.'), toolCall('pay', { amount: 5 }, 'p'), usage, finish()];

describe('a tool that waits for approval', () => {
  it('ends its response with a request, and its answer begins the next one', async () => {
    const { client, paid, asked } = await paying([pays, [text('It is paid.'), usage]]);
    const first = await create(client);
    expect(first).toMatchObject({
      status: 'completed',
      output: [
        { type: 'message', content: [{ text: 'Let me pay.' }] },
        {
          type: 'mcp_approval_request',
          id: expect.stringMatching(/^mcpr_/),
          name: 'pay',
          arguments: '{"amount":5}',
          server_label: model,
        },
      ],
      usage: { input_tokens: 10, total_tokens: 15 },
    });
    expect([first.output.length, paid]).toEqual([2, []]);
    const second = await answer(client, first, true);
    expect(second).toMatchObject({
      id: `${first.id}.1`,
      previous_response_id: first.id,
      conversation: first.conversation,
      status: 'completed',
      output: [
        {
          type: 'mcp_call',
          name: 'pay',
          arguments: '{"amount":5}',
          output: 'Paid.',
          status: 'completed',
          approval_request_id: requestsIn(first)[0]?.id,
        },
        { type: 'message', content: [{ text: 'It is paid.' }] },
      ],
      usage: { input_tokens: 10, total_tokens: 15 },
    });
    expect([paid, second.output.length]).toEqual([[{ amount: 5 }], 2]);
    const ids = [...first.output, ...second.output].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    // The cost of a part of a call is not known.
    for (const part of [first, second]) expect(part.usage).not.toHaveProperty('cost');
    // Each stays as it was.
    expect(await client.responses.retrieve(first.id)).toEqual(first);
    expect(await client.responses.retrieve(second.id)).toEqual(second);
    expect(asked.requests).toHaveLength(2);
  });

  it('does not run if it is denied, and the model reads the reason', async () => {
    const { client, paid, asked } = await paying([pays, [text('Then not.')]]);
    const first = await create(client);
    const second = await create(client, {
      previous_response_id: first.id,
      input: [verdict(requestsIn(first)[0], false, 'Too much.')],
    });
    expect(second).toMatchObject({
      output_text: 'Then not.',
      output: [{ type: 'mcp_call', output: null, status: 'failed' }, { type: 'message' }],
    });
    expect(JSON.stringify(second.output[0])).not.toContain('Too much.');
    expect(JSON.stringify(asked.requests[1])).toContain('Too much.');
    expect(paid).toEqual([]);
  });

  it('is streamed with the same events whenever it is read', async () => {
    const { client } = await paying([pays, [text('It is '), text('paid.')]]);
    const events = await read(
      await client.responses.create({ model, input: 'Pay.', stream: true }),
    );
    const first = last(events);
    expect(events.map(({ type }) => type.replace('response.', '')).slice(-8)).toEqual([
      'output_item.added',
      'mcp_call.in_progress',
      'mcp_call_arguments.delta',
      'mcp_call_arguments.done',
      // The call that did not begin.
      'output_item.done',
      'output_item.added',
      'output_item.done',
      'completed',
    ]);
    const stream = client.responses.stream({
      model,
      previous_response_id: first.id,
      input: [verdict(requestsIn(first)[0])],
    });
    const rest: ResponseStreamEvent[] = [];
    stream.on('event', (event) => rest.push(event));
    expect((await stream.finalResponse()).output_text).toBe('It is paid.');
    expect(rest.map(({ type }) => type.replace('response.', '')).slice(0, 3)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
    ]);
    expect(rest[0]).toMatchObject({ response: { id: `${first.id}.1`, output: [] } });
    const again = async (id: string, after?: number) =>
      read(
        await client.responses.retrieve(id, {
          stream: true,
          ...(after !== undefined && { starting_after: after }),
        }),
      );
    expect(await again(first.id)).toEqual(events);
    const whole = await again(`${first.id}.1`);
    expect(whole.map((it) => it.sequence_number)).toEqual(rest.map((it) => it.sequence_number));
    expect(await again(`${first.id}.1`, rest[3]?.sequence_number)).toEqual(whole.slice(4));
    const { output } = await client.responses.stream({ response_id: first.id }).finalResponse();
    expect(output).toMatchObject(first.output);
  });

  it('is shown after a reload, and is decided in its conversation', async () => {
    const { client, clientOf, paid } = await paying([pays, [text('It is paid.')]]);
    const { id, conversation } = await create(client, { conversation: 'chat' });
    const other = clientOf('other');
    const loaded = await other.responses.retrieve(id);
    expect([loaded.status, requestsIn(loaded).length]).toEqual(['completed', 1]);
    const second = await create(other, { conversation, input: [verdict(requestsIn(loaded)[0])] });
    expect([second.output_text, second.id, paid.length]).toEqual(['It is paid.', `${id}.1`, 1]);
  });

  it('waits for the tools that run', async () => {
    const calls = [toolCall('slow', {}, 's'), toolCall('pay', { amount: 7 }, 'q')];
    const { client, approvals, released$ } = await paying([[...calls, finish()]]);
    const { id } = await create(client, { background: true });
    await waiting(approvals);
    expect((await client.responses.retrieve(id)).status).toBe('in_progress');
    const stream = await client.responses.retrieve(id, { stream: true });
    released$.next('Slow, but here.');
    expect(last(await read(stream)).output).toMatchObject([
      { type: 'mcp_call', name: 'slow', output: 'Slow, but here.' },
      { type: 'mcp_approval_request', name: 'pay' },
    ]);
    expect(await client.responses.retrieve(id)).toMatchObject({ status: 'completed' });
  });

  it('holds a response that cannot be continued', async () => {
    const { client, approvals } = await paying([pays, [text('It is paid.')]]);
    const whole = create(client, { store: false });
    const { token } = await waiting(approvals);
    await approvals.decide(token, true);
    expect(await whole).toMatchObject({ status: 'completed', output_text: expect.any(String) });
    expect(requestsIn(await whole)).toEqual([]);
  });

  it('does not end a response if a rule decides', async () => {
    const { client, paid } = await paying([
      [toolCall('lawful', {}, 'l'), finish()],
      [text('Done.')],
    ]);
    const { id, output } = await create(client);
    expect(output).toMatchObject([{ type: 'mcp_call', output: 'Paid.' }, { type: 'message' }]);
    expect((await client.responses.retrieve(id)).output).toEqual(output);
    expect(paid).toHaveLength(1);
  });
});

describe('several approvals', () => {
  const both = [toolCall('pay', { amount: 1 }, 'p'), toolCall('pay', { amount: 2 }, 'q'), finish()];

  it('are decided in one request', async () => {
    const { client, paid } = await paying([both, [text('One of them.')]]);
    const first = await create(client);
    expect(requestsIn(first).map((it) => it.arguments)).toEqual(['{"amount":1}', '{"amount":2}']);
    const second = await answer(client, first, false, true);
    expect(second.id).toBe(`${first.id}.1_2`);
    expect(
      callsIn(second)
        .map(({ status }) => status)
        .sort(),
    ).toEqual(['completed', 'failed']);
    expect([second.output_text, paid]).toEqual(['One of them.', [{ amount: 2 }]]);
    expect(await client.responses.retrieve(second.id)).toEqual(second);
  });

  it('are decided one after the other: the rest is asked again', async () => {
    const { client, paid } = await paying([both, [text('Both.')]]);
    const first = await create(client);
    const second = await answer(client, first, true);
    expect(second.output).toMatchObject([
      { type: 'mcp_call', arguments: '{"amount":1}', output: 'Paid.' },
      { type: 'mcp_approval_request', id: requestsIn(first)[1]?.id, arguments: '{"amount":2}' },
    ]);
    expect(second).toMatchObject({ status: 'completed', id: `${first.id}.1` });
    const third = await answer(client, second, true);
    expect(third).toMatchObject({
      id: `${first.id}.1.2`,
      previous_response_id: second.id,
      output: [{ type: 'mcp_call', arguments: '{"amount":2}' }, { type: 'message' }],
    });
    expect(paid).toEqual([{ amount: 1 }, { amount: 2 }]);
    for (const response of [first, second, third]) {
      expect(await client.responses.retrieve(response.id)).toEqual(response);
    }
  });

  it('are decided by two clients at the same time', async () => {
    const { client, paid } = await paying([both, [text('Both.')]]);
    const first = await create(client);
    const answers = await Promise.all(
      requestsIn(first).map((request) =>
        create(client, { previous_response_id: first.id, input: [verdict(request)] }),
      ),
    );
    expect(answers.map(({ id }) => id)).toEqual([`${first.id}.1`, `${first.id}.2`]);
    expect(answers.some((it) => it.output_text === 'Both.')).toBe(true);
    expect(paid).toHaveLength(2);
    for (const response of answers) {
      expect(await client.responses.retrieve(response.id)).toEqual(response);
    }
  });

  it('of one tool, and of a later turn, are questions of their own', async () => {
    const { client, paid } = await paying([
      [toolCall('twice', { amount: 1 }, 'p'), finish()],
      [toolCall('pay', { amount: 2 }, 'p'), finish()],
      [text('Done.')],
    ]);
    let response = await create(client);
    const asked: (string | undefined)[] = [];
    while (requestsIn(response).length > 0) {
      asked.push(requestsIn(response)[0]?.arguments);
      response = await answer(client, response, true);
    }
    expect(asked).toEqual(['{"amount":1}', '{"amount":1}', '{"amount":2}']);
    expect([response.output_text, response.id.endsWith('.1.2.3'), paid.length]).toEqual([
      'Done.',
      true,
      2,
    ]);
  });

  it('leave tools that wait for their turn to the next response', async () => {
    const { client, released$ } = await paying([
      [toolCall('alone', { amount: 1 }, 'a'), toolCall('slow', {}, 's'), finish()],
      [text('Done.')],
    ]);
    const first = await create(client);
    expect(first.output).toMatchObject([{ type: 'mcp_approval_request', name: 'alone' }]);
    released$.next('Slow.');
    const { output } = await answer(client, first, true);
    expect(output).toMatchObject([
      { type: 'mcp_call', name: 'alone' },
      { type: 'mcp_call', name: 'slow', output: 'Slow.' },
      { type: 'message' },
    ]);
  });
});

describe('after the process has ended', () => {
  it('the next server shows the request, and continues', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const first = await paying([pays], { store });
    const response = await create(first.client);
    await first.close();
    const second = await paying([[text('It is paid.')]], { store });
    expect(await second.client.responses.retrieve(response.id)).toEqual(response);
    const events = await read(
      await second.client.responses.retrieve(response.id, { stream: true }),
    );
    expect(last(events)).toEqual({ ...response, output_text: undefined });
    const next = await answer(second.client, response, true);
    expect([next.output_text, first.paid, second.paid]).toEqual([
      'It is paid.',
      [],
      [{ amount: 5 }],
    ]);
    expect(await second.client.responses.retrieve(next.id)).toEqual(next);
    expect(await second.client.responses.retrieve(response.id)).toEqual(response);
    await second.close();
    const third = await paying([], { store });
    expect(await third.client.responses.retrieve(next.id)).toEqual(next);
  });
});

it('a question that the next server asks again stays the same one', async () => {
  const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
  const first = await paying([[toolCall('twice', { amount: 1 }, 'p'), finish()]], { store });
  const response = await create(first.client);
  await first.close();
  const { client, paid } = await paying([[text('It is paid.')]], { store });
  const second = await answer(client, response, true);
  expect(requestsIn(second).map(({ id }) => id)).toEqual([
    requestsIn(response)[0]?.id.replace(/1$/u, '2'),
  ]);
  const third = await answer(client, second, true);
  expect([third.output_text, third.id, paid.length]).toEqual([
    'It is paid.',
    `${response.id}.1.2`,
    1,
  ]);
});

describe('an answer to an approval request', () => {
  it('that is repeated returns the same response, and a different one is refused', async () => {
    const { client, paid } = await paying([pays, [text('It is paid.')]]);
    const first = await create(client);
    const [second, again] = await Promise.all([
      answer(client, first, true),
      answer(client, first, true),
    ]);
    expect(again).toEqual(second);
    expect(await answer(client, first, true)).toEqual(second);
    await expect(answer(client, first, false)).rejects.toMatchObject({
      status: 409,
      code: 'already_decided',
      param: 'input[0].approval_request_id',
    });
    expect(paid).toHaveLength(1);
  });

  it('that contradicts another one at the same time is refused, if it is the later one', async () => {
    const { client, paid } = await paying([pays, [text('Done.')]]);
    const first = await create(client);
    const answers = await Promise.allSettled([
      answer(client, first, true),
      answer(client, first, false),
    ]);
    expect(answers).toMatchObject([{ status: 'fulfilled' }, { reason: { status: 409 } }]);
    expect(paid).toHaveLength(1);
  });

  it('T12: that approves what was shown is refused, if another client has approved other arguments', async () => {
    const { client, approvals, paid } = await paying([pays, [text('Done.')]]);
    const first = await create(client);
    const { token } = await waiting(approvals);
    await approvals.decide(token, { approved: true, input: { amount: 1 } });
    await expect(answer(client, first, true)).rejects.toMatchObject({
      status: 409,
      code: 'already_decided',
      message: expect.stringContaining('approved with another input'),
    });
    expect(paid).toEqual([{ amount: 1 }]);
  });

  it('shows its tool while that runs', async () => {
    const { client, released$ } = await paying([
      [toolCall('slowly', { amount: 1 }, 'p'), finish()],
      [text('Done.')],
    ]);
    const first = await create(client);
    const seen: string[] = [];
    for await (const event of await client.responses.create({
      ...{ model, stream: true, previous_response_id: first.id },
      input: [verdict(requestsIn(first)[0])],
    })) {
      seen.push(event.type);
      if (event.type === 'response.mcp_call_arguments.done') released$.next('Paid.');
    }
    expect(seen.at(-1)).toBe('response.completed');
  });

  it('that comes after another one, or after its time, is refused', async () => {
    const { client, approvals, paid } = await paying([pays, [text('Then not.')], [text('Hello.')]]);
    const first = await create(client, { conversation: 'chat' });
    const { token } = await waiting(approvals);
    await approvals.decide(token, false);
    // Waits for its turn.
    await create(client, { conversation: 'chat', input: 'Hello?' });
    await expect(answer(client, first, true)).rejects.toMatchObject({ status: 409 });
    expect((await answer(client, first, false)).output_text).toBe('Then not.');
    expect(paid).toEqual([]);
  });

  it('is followed by the next question, once its call has ended', async () => {
    const { client, asked } = await paying([pays, [text('It is paid.')], [text('Yes.')]]);
    const first = await create(client);
    const next = (previous_response_id: string) =>
      create(client, { previous_response_id, input: 'Sure?' });
    await expect(next(first.id)).rejects.toMatchObject({ status: 409 });
    const second = await answer(client, first, true);
    const third = await next(second.id);
    expect(third).toMatchObject({
      output_text: 'Yes.',
      previous_response_id: second.id,
      conversation: first.conversation,
    });
    expect(asked.requests[2]?.messages).toHaveLength(5);
  });

  it('works for clients that send the whole conversation', async () => {
    const { client, asked } = await paying([pays, [text('It is paid.')], [text('Yes.')]]);
    const first = await create(client);
    const given = verdict(requestsIn(first)[0]);
    const second = await create(client, { previous_response_id: first.id, input: [given] });
    const question = { role: 'user', content: 'Pay.' };
    const whole = [question, ...first.output, given, ...second.output, question];
    expect((await create(client, { input: whole })).output_text).toBe('Yes.');
    expect(asked.requests[2]?.messages.map(({ role }) => role).join()).toBe(
      'user,assistant,tool,assistant,user',
    );
  });

  it('continues in the background', async () => {
    const { client, paid } = await paying([pays, [text('It is paid.')]]);
    const first = await create(client, { background: true });
    const asked = last(await read(await client.responses.retrieve(first.id, { stream: true })));
    const { id } = await create(client, {
      ...{ previous_response_id: first.id, background: true },
      input: [verdict(requestsIn(asked)[0])],
    });
    const rest = await read(await client.responses.retrieve(id, { stream: true }));
    expect([last(rest).id, last(rest).output.length, paid.length]).toEqual([`${first.id}.1`, 2, 1]);
  });

  it('is too late for a call that was cancelled', async () => {
    const { client, paid } = await paying([pays]);
    const first = await create(client);
    expect(await client.responses.cancel(first.id)).toMatchObject({ status: 'completed' });
    await expect(answer(client, first, true)).rejects.toMatchObject({ status: 410 });
    expect(paid).toEqual([]);
  });

  it('is of no use to others', async () => {
    const { clientOf, paid } = await paying([pays, pays], {
      user: ({ headers }) => headers.get('authorization')?.replace('Bearer ', ''),
    });
    const [ann, eve] = [clientOf('ann'), clientOf('eve')];
    const first = await create(ann);
    const own = await create(eve);
    const stolen = [verdict(requestsIn(first)[0])];
    const failed = { status: 404, code: 'not_found', type: 'invalid_request_error' };
    const param = 'input[0].approval_request_id';
    for (const more of [
      { previous_response_id: first.id },
      { previous_response_id: own.id },
      { conversation: own.conversation?.id },
      { conversation: first.conversation?.id },
    ]) {
      await expect(create(eve, { ...more, input: stolen })).rejects.toMatchObject({
        ...failed,
        param,
      });
    }
    await expect(eve.responses.retrieve(`${first.id}.1`)).rejects.toMatchObject(failed);
    expect(paid).toEqual([]);
  });

  it('is checked before anything is decided', async () => {
    const { client, paid } = await paying([pays, [text('It is paid.')]]);
    const first = await create(client);
    const right = verdict(requestsIn(first)[0]);
    const { approval_request_id: id } = right;
    const { conversation } = first;
    const of = (given: object) => ({ ...right, ...given });
    const refused: readonly (readonly [object, object])[] = [
      [{ input: [of({ approval_request_id: 'x' })] }, { status: 404 }],
      [{ input: [of({ approval_request_id: 7 })] }, { status: 404 }],
      [{ input: [of({ approval_request_id: id.replace(/1$/u, '2') })] }, { status: 404 }],
      [{ input: [of({ approval_request_id: id.replace(/_.*_/u, '_x_') })] }, { status: 404 }],
      [{ input: [right, of({ approval_request_id: id.replace(/1$/u, '2') })] }, { status: 404 }],
      [{ input: [of({ approve: 'yes' })] }, { status: 400, param: 'input[0].approve' }],
      [{ input: [of({ reason: 7 })] }, { status: 400, param: 'input[0].reason' }],
      [{ input: [of({ reason: 'x'.repeat(1_001) })] }, { status: 400, param: 'input[0].reason' }],
      [{ input: [right, right] }, { status: 400, param: 'input' }],
      [{ input: [right, of({ approve: false })] }, { status: 400, param: 'input' }],
      [{ input: [right, { role: 'user', content: '?' }] }, { status: 400, param: 'input' }],
      [
        { previous_response_id: undefined, input: [right] },
        { status: 400, param: 'previous_response_id' },
      ],
      [{ previous_response_id: `${first.id}.1.7`, input: [right] }, { status: 404 }],
      [{ previous_response_id: `${first.id}.x`, input: [right] }, { status: 404 }],
      [
        { previous_response_id: `${first.id}${'.1'.repeat(5_000)}`, input: [right] },
        { status: 404 },
      ],
      [{ previous_response_id: undefined, conversation: 'other', input: [right] }, { status: 404 }],
      [
        { store: false, input: [right] },
        { status: 400, param: 'store' },
      ],
      [
        { conversation, input: [right] },
        { status: 400, param: 'conversation' },
      ],
    ];
    for (const [more, failed] of refused) {
      const sent = create(client, { previous_response_id: first.id, ...more });
      await expect(sent).rejects.toMatchObject({ type: 'invalid_request_error', ...failed });
    }
    await expect(client.responses.retrieve(`${first.id}.2`)).rejects.toMatchObject({ status: 404 });
    expect(paid).toEqual([]);
    expect((await answer(client, first, true)).output_text).toBe('It is paid.');
  });

  it('decides nothing if there are too many answers for the id of the next response', async () => {
    const many = Array.from({ length: 45 }, (_, at) => toolCall('pay', { amount: at }, `p${at}`));
    const { client, paid } = await paying([[...many, finish()], [text('Paid.')]]);
    const first = await create(client);
    const all = requestsIn(first).map(() => true);
    await expect(answer(client, first, ...all)).rejects.toMatchObject({
      status: 400,
      param: 'input',
    });
    expect(paid).toEqual([]);
    const half = await answer(client, first, ...all.slice(0, 25));
    expect(requestsIn(half)).toHaveLength(20);
    expect(paid).toHaveLength(25);
  });
});
