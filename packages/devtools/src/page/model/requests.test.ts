import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  type Layer,
  type Message,
  MillraceError,
  openDemand,
  retry,
  tool,
} from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { takeWhile, throwError } from 'rxjs';
import { createAgentSource } from '../../agent-source.js';
import type { FeedLine } from '../protocol.js';
import { withoutKeys } from '../secrets.js';
import { attemptsOf, curlOf, curlOfExchange, wayOf } from './curl.js';
import { errorIn, fieldsOf } from './read-event.js';
import { rawAnswer, rawRequest, viewOf, withoutAnswer } from './requests.js';
import { eventsOf, feedOf, forecaster, key } from './requests.test-support.js';
import { createRun, type Run } from './run.js';
import { requestOf } from './whole-requests.js';

const runOf = (events: readonly AgentEvent[]): Run => {
  const run = createRun();
  run.log.append(feedOf(events));
  return run;
};

const asked = () => eventsOf(forecaster().stream$('Boat or train?', { callId: 'c' }));

const requestAt = ({ requests }: Run, index: number) => {
  const request = requests.list[index];
  if (request === undefined) throw new Error('There is no such request.');
  return request;
};

describe('the requests of a run', () => {
  it('have the system prompt, the messages and the tools, and what is new in each', () => {
    const run = runOf(asked());
    expect(run.requests.list.map(({ turn }) => turn)).toEqual([1, 2]);
    const first = viewOf(requestAt(run, 0));
    expect(first.system).toMatch(/^You plan journeys\./u);
    expect(first.messages.map(({ role, text: it }) => [role, it])).toEqual([
      ['user', 'Boat or train?'],
    ]);
    expect(first.tools.map(({ name }) => name)).toEqual(['weather', 'tickets']);
    expect([first.same, first.removed, first.systemBefore]).toEqual([0, [], undefined]);
    const second = viewOf(requestAt(run, 1));
    expect(second.system).toBe('Answer in one sentence.');
    expect(second.systemBefore).toBe(first.system);
    expect(second.messages.map(({ role, isNew }) => [role, isNew])).toEqual([
      ['user', false],
      ['assistant', true],
      ['tool', true],
    ]);
    expect(second.same).toBe(1);
    expect(second.messages[1]?.text).toBe('w: weather({"city":"Flåm"})\nt: tickets({})');
    expect(second.messages[2]?.text).toContain('w → Dry.');
    expect(second.tools.some(({ isNew }) => isNew)).toBe(false);
  });

  it('have descriptions of tools without keys', () => {
    const description = `Tickets. Their key is ${key}.`;
    const sells = tool({ name: 'tickets', description, run: () => '' });
    const agent = createAgent({ model: scriptedModel([text('Hi.'), finish()]), tools: [sells] });
    const run = runOf(eventsOf(agent.stream$('?', { callId: 'c' })));
    const [shown] = viewOf(requestAt(run, 0)).tools;
    expect(shown?.description).toBe('Tickets. Their key is $API_KEY.');
  });

  it('are found by the message that answers them', () => {
    const run = runOf(asked());
    const answer = run.conversation.parts.findLast((part) => part.type === 'message');
    expect(run.requests.at('c', answer?.position ?? 0)?.turn).toBe(2);
    expect(run.requests.at('other', 5)).toBe(undefined);
  });

  it('are copied as the provider got them, with the key of the shell', () => {
    const headers = { authorization: 'Bearer [redacted]', accept: "it's" };
    const url = 'https://acme.example/v1?key=[redacted]';
    const sent = { at: 0, url, headers, body: `{"a":"It's"}`, omitted: 0 };
    expect(curlOfExchange(sent)).toBe(
      [
        `curl 'https://acme.example/v1?key='"$API_KEY"''`,
        `-H 'authorization: Bearer '"$API_KEY"''`,
        String.raw`-H 'accept: it'\''s'`,
        String.raw`-d '{"a":"It'\''s"}'`,
      ].join(' \\\n  '),
    );
  });

  it('count attempts, not redirects', () => {
    const sent = (status: number, url = 'https://acme.example/v1') => ({
      ...{ at: 0, url, headers: {}, body: '', omitted: 0 },
      response: { at: 0, status, body: '', omitted: 0 },
    });
    const moved = sent(200, 'https://acme.example/v2');
    expect(wayOf([sent(200)])).toBe('POST https://acme.example/v1');
    expect(wayOf([sent(307), moved])).toBe('POST https://acme.example/v2');
    expect(wayOf([sent(503), sent(308), sent(307), moved])).toBe(
      'POST https://acme.example/v2 · attempt 2',
    );
    expect(wayOf([sent(307), sent(503), sent(200)])).toBe(
      'POST https://acme.example/v1 · attempt 2',
    );
    expect(attemptsOf([sent(307), sent(503), sent(200)]).map((it) => it.text)).toEqual([
      '307 · after 0 ms · redirected',
      '503 · after 0 ms · sent again 0 ms later',
      '200 · after 0 ms',
    ]);
  });

  it('have each attempt with its status, time and body, and the wait for the next one', () => {
    const sent = { url: 'https://acme.example/v1', headers: {}, body: '', omitted: 0 };
    const limited = { at: 30, status: 429, body: 'Slow down.', omitted: 0 };
    expect(
      attemptsOf([
        { ...sent, at: 10, response: limited },
        { ...sent, at: 1_030, response: { at: 1_035, body: '', omitted: 0 } },
        { ...sent, at: 2_035, response: { at: 2_040, status: 200, body: 'Hi.', omitted: 3 } },
        { ...sent, at: 2_040 },
      ]),
    ).toEqual([
      { text: '429 · after 20 ms · sent again 1.0 s later', body: 'Slow down.', omitted: 0 },
      { text: 'No response · after 5 ms · sent again 1.0 s later', body: '', omitted: 0 },
      { text: '200 · after 5 ms · sent again 0 ms later', body: 'Hi.', omitted: 3 },
    ]);
  });

  it('have the error of a call that failed before its first answer', () => {
    const model = scriptedModel(throwError(() => new MillraceError('auth', 'No such key.')));
    const agent = createAgent({ instructions: 'Be kind.', model });
    const run = runOf(eventsOf(agent.stream$('Hi.', { callId: 'c' })));
    const request = requestAt(run, 0);
    expect(request.answer).toBe(undefined);
    expect(request.failure).toEqual({ code: 'auth', message: 'No such key.' });
    expect(viewOf(request)).toMatchObject({ system: 'Be kind.', messages: [{ text: 'Hi.' }] });
    const failed = run.conversation.parts.at(-1);
    expect(run.requests.at('c', failed?.position ?? 0)).toBe(request);
  });

  it('say that an attempt failed while the next one runs, and that all failed, without keys', () => {
    const limited = new MillraceError('rateLimited', `Slow down, ${key}.`, { retryable: true });
    const model = () => scriptedModel(throwError(() => limited));
    const callOf = (attempts: number) =>
      createAgent({ model: retry(model(), { attempts }) }).stream$('Hi.', { callId: 'c' });
    const isWaiting = (event: AgentEvent) => event.type === 'modelRetry';
    const waiting = runOf(eventsOf(callOf(2).pipe(takeWhile((event) => !isWaiting(event), true))));
    const failed = runOf(eventsOf(callOf(1)));
    expect(withoutAnswer(requestAt(runOf(asked().slice(0, 2)), 0))).toBe('None yet.');
    expect(withoutAnswer(requestAt(waiting, 0))).toBe(
      'None yet. The last attempt failed: rateLimited. Slow down, $API_KEY.',
    );
    expect(withoutAnswer(requestAt(failed, 0))).toBe(
      'None. Failed: rateLimited. Slow down, $API_KEY.',
    );
  });

  it('are copied as JSON and as curl, without keys', () => {
    const run = runOf(asked());
    const [first, second] = [requestAt(run, 0), requestAt(run, 1)];
    expect(JSON.parse(rawRequest(second))).toMatchObject({
      system: 'Answer in one sentence.',
      messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }],
      tools: [{ name: 'weather' }, { name: 'tickets' }],
    });
    expect(JSON.parse(rawAnswer(second) ?? '')).toMatchObject({ finish: 'stop' });
    const curl = curlOf(first);
    expect(curl).toContain('-H "Authorization: Bearer $API_KEY"');
    // A quote in the prompt does not end the string of the shell.
    expect(curl).toContain(String.raw`It'\''s the key $API_KEY.`);
    for (const copied of [curl, curlOf(second), rawRequest(first), rawRequest(second)])
      expect(copied).not.toContain(key);
    const [, body = ''] = /-d '([\s\S]*)'$/u.exec(curlOf(second)) ?? [];
    expect(JSON.parse(body.replaceAll(String.raw`'\''`, "'"))).toMatchObject({
      messages: [
        { role: 'system' },
        { role: 'user', content: 'Boat or train?' },
        { role: 'assistant', tool_calls: [{ id: 'w' }, { id: 't' }] },
        { role: 'tool', tool_call_id: 'w', content: 'Dry.' },
        { role: 'tool', tool_call_id: 't' },
      ],
    });
  });

  it('are whole for any windows of a conversation, though each message is sent once', () => {
    const messages = Array.from({ length: 12 }, (_, at): Message => ({
      ...{ id: `m${at}`, role: 'user', content: [{ type: 'text', text: `Message ${at}` }] },
    }));
    const windows = fc.array(fc.array(fc.nat(11), { maxLength: 14 }), { maxLength: 8 });
    fc.assert(
      fc.property(windows, (given) => {
        const events = given.map((places, index) => ({
          ...{ type: 'preReasoning', rootId: 'c', callId: 'c', agent: ['Guide'], iteration: index },
          ...{ seq: index + 1, at: index, options: {} },
          messages: places.map((place) => messages[place]),
        })) as unknown as readonly AgentEvent[];
        const run = runOf(events);
        const ids = run.requests.list.map(({ event }) =>
          requestOf(event).messages.map((message) => fieldsOf(message)['id']),
        );
        expect(ids).toEqual(given.map((places) => places.map((place) => `m${place}`)));
        const sent = run.log.items().map((item) => fieldsOf(JSON.parse(JSON.stringify(item))));
        const bodies = sent.flatMap(({ messages: own }) => own as readonly unknown[]);
        expect(bodies).toHaveLength(new Set(given.flat()).size);
      }),
    );
  });

  it('make a log that grows with the call, not with its square', () => {
    const sizeOf = (turns: number): number => {
      const model = scriptedModel(
        ...Array.from({ length: turns }, (_, at) => [toolCall('again', {}, `t${at}`), finish()]),
        [text('Done.'), finish()],
      );
      const again = tool({ name: 'again', description: 'Again.', run: () => 'x'.repeat(400) });
      const agent = createAgent({ model, tools: [again], limits: { maxIterations: turns + 2 } });
      return JSON.stringify(feedOf(eventsOf(agent.stream$('?', { callId: 'c' })))).length;
    };
    const [small, large] = [sizeOf(20), sizeOf(80)];
    expect(large / small).toBeLessThan(4.4);
  });

  it('of an unknown file are read as they are', () => {
    const run = createRun();
    run.log.append([
      { ...feedOf(asked())[0], type: 'preReasoning', messages: [{}], ranges: [['x', -1]] } as never,
      { ...feedOf(asked())[0], type: 'preReasoning', messages: 7, options: null } as never,
    ]);
    expect(run.requests.list.map((one) => viewOf(one).messages.length)).toEqual([1, 0]);
  });
});

describe('an error', () => {
  it('of a tool has its stack and causes, without keys', () => {
    const run = runOf(asked());
    const failed = run.conversation.parts.find(
      (part) => part.type === 'tool' && part.name === 'tickets',
    );
    expect(failed?.type === 'tool' && failed.result?.text).toContain('Bearer $API_KEY');
    const error = fieldsOf(failed?.type === 'tool' ? failed.result?.error : undefined);
    expect(errorIn(error).message).toMatch(/The counter is closed/u);
    expect(String(error['stack'])).toMatch(/requests\.test-support/u);
    expect(fieldsOf(error['cause'])['message']).toBe('The socket has ended.');
    // A cause that is no error is named, without its fields.
    expect(JSON.stringify(error)).not.toContain(key);
  });
});

describe('keys', () => {
  it.each([
    ['Bearer abcdefghijklmnop', 'Bearer $API_KEY'],
    ['{"api_key":"abcdefgh"}', '{"api_key":"$API_KEY"}'],
    ['https://a.example/v1?key=abcdefgh&x=1', 'https://a.example/v1?key=$API_KEY&x=1'],
    ['postgres://me:secret@db/x', 'postgres://me:$API_KEY@db/x'],
    ['Authorization: Basic YW5uOnBhc3M=', 'Authorization: Basic $API_KEY'],
    ['AWS_SESSION_TOKEN=abcdefgh', 'AWS_SESSION_TOKEN=$API_KEY'],
    [['whsec', 'abcDEF1234567890ab/cdef+12'].join('_'), '$API_KEY'],
    ['a task-oriented word', 'a task-oriented word'],
    ['-H "Authorization: Bearer $API_KEY"', '-H "Authorization: Bearer $API_KEY"'],
  ])('in %j are replaced', (given, expected) => {
    expect(withoutKeys(given)).toBe(expected);
  });
});

describe('a request that a layer changes after its interceptors', () => {
  it('is shown as the model got it, while a page is open', () => {
    const { source, inspect, running$ } = createAgentSource({});
    const running = running$.subscribe();
    const hello: FeedLine = {
      ...{ line: 'hello', title: '', source: 'agents', holdable: [], breakpoints: [] },
    };
    running.add(source.hub.page$(hello, openDemand).subscribe());
    const shortening: Layer = {
      name: 'shortening',
      model: () => (next) => ({
        ...next,
        stream$: ({ messages, ...options }, context) =>
          next.stream$({ ...options, messages: messages.slice(-2) }, context),
      }),
    };
    const agent = createAgent({
      model: scriptedModel([toolCall('again', {}, 't'), finish()], [text('Done.'), finish()]),
      tools: [tool({ name: 'again', description: 'Again.', run: () => 'Yes.' })],
      use: [shortening],
    });
    const got: number[] = [];
    inspect(agent)
      .call$('?', { callId: 'c' })
      .subscribe({
        complete: () => got.push(1),
      });
    const log = source.hub.logs.get('c')?.slice(0, Infinity) ?? [];
    running.unsubscribe();
    const whole = createRun();
    whole.log.append(JSON.parse(JSON.stringify(log)));
    const [first, second] = whole.requests.list;
    expect(got).toEqual([1]);
    expect([first?.model, first?.sent]).toEqual(['scripted', undefined]);
    expect(second?.sent).toBeDefined();
    expect(second && viewOf(second).messages.map(({ role }) => role)).toEqual([
      'assistant',
      'tool',
    ]);
    expect(second && requestOf(second.event).messages).toHaveLength(3);
    expect(second && viewOf(second).removed.map(({ role }) => role)).toEqual(['user']);
  });
});
