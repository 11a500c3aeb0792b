import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  MillraceError,
  on,
  suspend,
  textBlock,
  tool,
  toolResults,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import {
  finish,
  marbles,
  scriptedModel,
  text,
  thinking,
  toolCall,
  verifyEvents,
} from 'millrace/testing';
import { cost } from 'millrace/traffic';
import { filter, from, lastValueFrom, type Observable, of, toArray } from 'rxjs';
import { eventOf, hello, nested, refused } from '../events.test-support.js';
import { scenarios } from '../scenarios.test-support.js';
import { toUiMessageStream } from './to-ui-message-stream.js';

const all = <T>(value$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(value$.pipe(toArray()));

const scenario = (name: string) => {
  const found = scenarios.find((it) => it.name === name);
  if (found === undefined) throw new Error(name);
  return found.stream$({ callId: 'c' });
};

const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const of1 = { providerMetadata: { millrace: { messageId: 'c/1' } } };

const steered = eventOf({
  type: 'steered',
  message: { id: 's', role: 'user', content: [textBlock('Shorter!')] },
});
const begun = eventOf({ type: 'preCall', input: [] }, { iteration: 0 });

describe('toUiMessageStream', () => {
  it('I9: streams a call as one message while it runs', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model('5ms h 4ms t 9ms (tf|)');
      const chunk$ = createAgent({ model: slow })
        .stream$('?', { callId: 'c', scheduler })
        .pipe(toUiMessageStream());
      expectObservable(chunk$).toBe('(so) 1ms (hH) 1ms (Ktd) 5ms (deEf|)', {
        s: { type: 'start', messageId: 'c' },
        o: { type: 'start-step' },
        h: { type: 'reasoning-start', id: 'c/1/thinking/1', ...of1 },
        H: { type: 'reasoning-delta', id: 'c/1/thinking/1', delta: 'h' },
        K: { type: 'reasoning-end', id: 'c/1/thinking/1' },
        t: { type: 'text-start', id: 'c/1/text/2', ...of1 },
        d: { type: 'text-delta', id: 'c/1/text/2', delta: 't' },
        e: { type: 'text-end', id: 'c/1/text/2' },
        E: { type: 'finish-step' },
        f: {
          type: 'finish',
          finishReason: 'stop',
          messageMetadata: { reason: 'answer', iterations: 1, usage: noUsage },
        },
      });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^ 19ms !');
    });
  });

  it('shows a tool call from its first delta to its output', async () => {
    const chunks = await all(scenario('progress').pipe(toUiMessageStream()));
    expect(chunks.slice(1, 9)).toEqual([
      { type: 'start-step' },
      { type: 'tool-input-start', toolCallId: 'c/1/u', toolName: 'upload', ...of1 },
      { type: 'tool-input-delta', toolCallId: 'c/1/u', inputTextDelta: '{}' },
      { type: 'tool-input-available', toolCallId: 'c/1/u', toolName: 'upload', input: {} },
      {
        type: 'tool-output-available',
        toolCallId: 'c/1/u',
        output: { percent: '50' },
        preliminary: true,
      },
      {
        type: 'tool-output-available',
        toolCallId: 'c/1/u',
        output: { percent: '100' },
        preliminary: true,
      },
      { type: 'tool-output-available', toolCallId: 'c/1/u', output: { a: 1 } },
      { type: 'finish-step' },
    ]);
  });

  it('keeps the order of what a message is made of', async () => {
    const chunks = await all(scenario('parallel tools').pipe(toUiMessageStream()));
    expect(chunks.slice(2, 7).map(({ type }) => type)).toEqual([
      'text-start',
      'text-delta',
      'text-end',
      'tool-input-start',
      'tool-input-delta',
    ]);
  });

  it('shows the input that an interceptor has edited', async () => {
    const edited = scenario('a use of a tool that is edited twice');
    const inputs = (await all(edited.pipe(toUiMessageStream()))).filter(
      ({ type }) => type === 'tool-input-available',
    );
    expect(inputs.map((chunk) => ('input' in chunk ? chunk.input : undefined))).toEqual([
      { city: 'Rome' },
      { city: 'Paris' },
    ]);
  });

  it('I10: ends a failed call with the error text for clients, and completes', async () => {
    const event$ = createAgent({ model: scriptedModel() }).stream$('?', {
      callId: 'c',
      request: { toolChoice: { name: 'none' } },
    });
    expect(await all(event$.pipe(toUiMessageStream()))).toEqual([
      { type: 'start', messageId: 'c' },
      {
        type: 'message-metadata',
        messageMetadata: { error: { code: 'config', retryable: false } },
      },
      { type: 'error', errorText: 'Something went wrong.' },
      { type: 'finish', finishReason: 'error', messageMetadata: { usage: noUsage } },
    ]);
  });

  it('ends a call that was aborted with abort', async () => {
    const aborted = eventOf({ type: 'error', error: new MillraceError('aborted', 'left') });
    expect(await all(of(begun, aborted).pipe(toUiMessageStream()))).toEqual([
      { type: 'start', messageId: 'c' },
      { type: 'abort', reason: 'The request was cancelled.' },
    ]);
    expect((await all(of(begun).pipe(toUiMessageStream()))).at(-1)).toEqual({ type: 'abort' });
  });

  it('X10: uses the text of a hook, or the default text if the hook fails', async () => {
    const failing = (await all(scenario('a tool error'))).map((event) =>
      event.type === 'postCall' ? eventOf({ type: 'error', error: refused }) : event,
    );
    const said = async (options: Parameters<typeof toUiMessageStream>[0]) =>
      (await all(from(failing).pipe(toUiMessageStream(options)))).flatMap((chunk) =>
        'errorText' in chunk ? [chunk.errorText] : [],
      );
    const busy = 'There are too many requests right now. Please try again in a moment.';
    expect(await said({})).toEqual(['The tool failed.', busy]);
    expect(
      await said({
        onError: ({ code }) => `Sorry: ${code}`,
        onToolError: ({ toolCall: { name } }) => `${name} failed`,
      }),
    ).toEqual(['broken failed', 'Sorry: rateLimited']);
    const broken = (): never => {
      throw new Error('no');
    };
    expect(await said({ onError: broken, onToolError: broken })).toEqual([
      'The tool failed.',
      busy,
    ]);
    const mute = { onError: () => undefined, onToolError: () => 1 } as unknown as object;
    expect(await said(mute)).toEqual(['The tool failed.', busy]);
  });

  it('shows sub-agents next to the answer, and counts their usage', async () => {
    const chunks = await all(nested().stream$('?', { callId: 'c' }).pipe(toUiMessageStream()));
    const agents = chunks.filter(({ type }) => type === 'data-agent');
    expect(agents).toEqual([
      {
        type: 'data-agent',
        id: 'c/t',
        data: { agent: ['first', 'second'], toolCallId: 'c/1/t', status: 'running' },
      },
      {
        type: 'data-agent',
        id: 'c/t/t',
        data: { agent: ['first', 'second', 'third'], toolCallId: 'c/t/1/t', status: 'running' },
      },
      {
        type: 'data-agent',
        id: 'c/t/t',
        data: {
          agent: ['first', 'second', 'third'],
          toolCallId: 'c/t/1/t',
          status: 'replied',
          reason: 'answer',
          text: 'third.',
        },
      },
      {
        type: 'data-agent',
        id: 'c/t',
        data: {
          agent: ['first', 'second'],
          toolCallId: 'c/1/t',
          status: 'replied',
          reason: 'answer',
          text: 'second.',
        },
      },
    ]);
    const progress = chunks.flatMap((it) => (it.type === 'data-agent-progress' ? [it.data] : []));
    expect(progress).toEqual([
      { kind: 'tool', callId: 'c/t', toolCallId: 'c/t/1/t', toolName: 'ask', status: 'running' },
      { kind: 'text', callId: 'c/t/t', messageId: 'c/t/t/1', delta: 'third.' },
      { kind: 'tool', callId: 'c/t', toolCallId: 'c/t/1/t', status: 'done' },
      { kind: 'text', callId: 'c/t', messageId: 'c/t/2', delta: 'second.' },
    ]);
    expect(chunks.at(-1)).toMatchObject({
      messageMetadata: {
        usage: {
          inputTokens: 500,
          outputTokens: 50,
          cacheReadTokens: 100,
          cacheWriteTokens: 15,
        },
      },
    });
  });

  it('shows what a call costs, but not by model and agent', async () => {
    const prices = { secret: { input: 1e6, output: 0 } };
    const model = {
      ...scriptedModel([text('Hi.'), { type: 'usage', usage: { inputTokens: 3 } }]),
      name: 'secret',
    };
    const use = [cost({ currency: 'EUR', date: '2026-11-30', prices })];
    const event$ = createAgent({ model, use }).stream$('?', { callId: 'c' });
    const chunks = await all(event$.pipe(toUiMessageStream()));
    expect(chunks.at(-1)).toMatchObject({
      messageMetadata: { cost: { currency: 'EUR', total: 3, atLeast: 3 } },
    });
    expect(JSON.stringify(chunks)).not.toContain('secret');
  });

  it('counts the known usage of a failed call', async () => {
    const events = (await all(nested().stream$('?', { callId: 'c' }))).filter(
      ({ type, parentId }) => type !== 'postCall' || parentId !== undefined,
    );
    const chunks = await all(
      from([...events, eventOf({ type: 'error', error: refused })]).pipe(toUiMessageStream()),
    );
    expect(chunks.at(-1)).toMatchObject({ messageMetadata: { usage: { inputTokens: 500 } } });
  });

  it('sends transient notices about retries and fallbacks', async () => {
    const chunks = await all(scenario('a fallback').pipe(toUiMessageStream()));
    expect(chunks.slice(2, 4)).toEqual([
      {
        type: 'data-retry',
        data: { attempt: 1, attempts: 2, waitMs: 0, code: 'server' },
        transient: true,
      },
      { type: 'data-fallback', data: { code: 'server' }, transient: true },
    ]);
  });

  it('sends notices about sources and queued calls', async () => {
    const passages = [
      { source: 'a.md', title: 'A', text: '.' },
      { source: 'b.md', text: '.' },
    ];
    const events$ = from([
      begun,
      eventOf({ type: 'queued', why: 'calls', ahead: 2 }),
      eventOf({ type: 'modelWaiting', model: 'm', waitedMs: 10_000 }),
      eventOf({ type: 'retrieved', passages }),
    ]);
    expect((await all(events$.pipe(toUiMessageStream()))).slice(1, 4)).toEqual([
      { type: 'data-queued', data: { ahead: 2 }, transient: true },
      { type: 'data-waiting', data: { waitedMs: 10_000 }, transient: true },
      {
        type: 'data-sources',
        data: [
          { number: 1, source: 'a.md', title: 'A' },
          { number: 2, source: 'b.md' },
        ],
      },
    ]);
  });

  it('sends notices about waiting tools and repaired arguments', async () => {
    const data = async (name: string) =>
      (await all(scenario(name).pipe(toUiMessageStream()))).filter(
        ({ type }) => type.startsWith('data-') && !type.startsWith('data-agent'),
      );
    const use = (toolCallId: string, toolName: string) => ({
      ...{ toolCallId, toolName, localId: toolCallId.slice(-1) },
    });
    expect(await data('a suspension')).toEqual([
      {
        ...{ type: 'data-suspended', id: 'c/1/p' },
        data: { ...use('c/1/p', 'pay'), request: { amount: 5 } },
      },
    ]);
    expect(await data('arguments that were repaired')).toEqual([
      { type: 'data-repaired', data: use('c/1/a', 'weather'), transient: true },
    ]);
    const id = 'c/w/1/a';
    const inputSchema = {
      ...{ type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
    };
    const requested = { status: 'requested', inputSchema };
    expect(await data('an approval below')).toEqual([
      { type: 'data-approval', id, data: { ...use(id, 'weather'), ...requested } },
      { type: 'data-approval', id, data: { ...use(id, 'weather'), status: 'approved' } },
    ]);
  });

  it('T13: shows a result that was brought later, with its tool', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend() });
    const model = scriptedModel([toolCall('pay', { amount: 5 }, 'p')], [text('Paid.')]);
    const session = sessions(createAgent({ model, tools: [pay] })).open('s');
    await session.call('?', { callId: 'a' });
    const resumed$ = session.stream$(toolResults({ p: 'done' }), { callId: 'b' });
    const chunks = await all(resumed$.pipe(verifyEvents(), toUiMessageStream()));
    const toolCallId = 'b/0/p';
    expect(chunks.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
      { type: 'tool-input-start', toolCallId, toolName: 'pay' },
      { type: 'tool-input-delta', toolCallId },
      { type: 'tool-input-available', toolCallId, input: { amount: 5 } },
      { type: 'tool-output-available', toolCallId, output: 'done' },
    ]);
  });

  it('X10: hides the reason for a denial', async () => {
    const chunks = await all(scenario('an approval').pipe(toUiMessageStream({ target: 7 })));
    expect(JSON.stringify(chunks)).not.toContain('sk-hunter2');
    expect(chunks).toContainEqual({ type: 'tool-output-denied', toolCallId: 'c/1/b' });
    const inputs = chunks.filter(({ type }) => type === 'tool-input-available');
    expect(inputs).toMatchObject([
      ...[{ input: { city: 'Oslo' } }, { input: { city: 'Rome' } }],
      { toolCallId: 'c/1/a', input: { city: 'Paris' } },
    ]);
  });

  it('makes a message of each call of a hot stream', async () => {
    const events = [...(await hello('one')), ...(await hello('other'))];
    const chunks = await all(from(events).pipe(toUiMessageStream()));
    expect(
      chunks.flatMap((it) =>
        it.type === 'start' ? [it.messageId] : it.type === 'finish' ? ['finish'] : [],
      ),
    ).toEqual(['one', 'finish', 'other', 'finish']);
  });

  it('ignores unknown events', async () => {
    const strange = { ...begun, type: 'unheardOf' } as unknown as AgentEvent;
    const chunks = await all(of(begun, strange).pipe(toUiMessageStream()));
    expect(chunks).toEqual([{ type: 'start', messageId: 'c' }, { type: 'abort' }]);
  });

  it('refuses options that do not exist', () => {
    expect(() => toUiMessageStream({ target: 5 } as unknown as { target: 6 })).toThrow(
      "toUiMessageStream(): 'target' must be 6 or 7, not 5.",
    );
    expect(() => toUiMessageStream({ onErrors: 1 } as object)).toThrow(/no option 'onErrors'/);
  });
});

describe('readers of different versions', () => {
  const differing = async (event$: Observable<AgentEvent>) => {
    const events = await all(event$);
    const six = await all(from(events).pipe(toUiMessageStream({ target: 6 })));
    const seven = await all(from(events).pipe(toUiMessageStream({ target: 7 })));
    const only = (these: readonly object[], those: readonly object[]) => {
      const known = new Set(those.map((it) => JSON.stringify(it)));
      return these.filter((it) => !known.has(JSON.stringify(it)));
    };
    return [only(six, seven), only(seven, six)];
  };

  it('void a message with a data part, or retract it', async () => {
    expect(await differing(scenario('a message that is begun anew'))).toEqual([
      [{ type: 'data-discarded', id: 'c/1', data: { messageId: 'c/1' } }],
      [{ type: 'reset-step' }],
    ]);
  });

  it('show a denial as an error with the reason, or as a denial', async () => {
    expect(await differing(scenario('a denial'))).toEqual([
      [
        {
          type: 'tool-output-error',
          toolCallId: 'c/1/a',
          errorText: 'This tool call was denied.',
          providerMetadata: { millrace: { denied: true } },
        },
      ],
      [
        {
          type: 'tool-approval-request',
          approvalId: 'c/1/a',
          toolCallId: 'c/1/a',
          isAutomatic: true,
        },
        { type: 'tool-approval-response', approvalId: 'c/1/a', approved: false },
        { type: 'tool-output-denied', toolCallId: 'c/1/a' },
      ],
    ]);
  });

  it('finish an interrupted message with another reason', async () => {
    const messageMetadata = { reason: 'interrupted', iterations: 0, usage: noUsage };
    expect(await differing(scenario('an interrupt with a message'))).toEqual([
      [{ type: 'finish', finishReason: 'other', messageMetadata }],
      [{ type: 'finish', finishReason: 'interrupted', messageMetadata }],
    ]);
  });

  it('show a steered message as data or as a message', async () => {
    expect(await differing(of(begun, steered))).toEqual([
      [{ type: 'data-steered', id: 's', data: { messageId: 's', text: 'Shorter!' } }],
      [{ type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'Shorter!' }] }],
    ]);
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['refusal', 'content-filter'],
    ['filtered', 'content-filter'],
  ] as const)('finish alike: %s is %s', async (why, finishReason) => {
    const model = scriptedModel([text('So'), finish(why)]);
    const chunks = await all(createAgent({ model }).stream$('?').pipe(toUiMessageStream()));
    expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason });
  });

  it('see a tool as failed if an interceptor rejects it after its run', async () => {
    const agent = createAgent({
      model: scriptedModel([thinking('Hm'), toolCall('now', {}, 'n')], [text('So.')]),
      tools: [tool({ name: 'now', description: 'Tells the time.', run: () => 'noon' })],
      use: [
        on(
          'postActing',
          filter(() => false),
        ),
      ],
    });
    const chunks = await all(agent.stream$('?').pipe(toUiMessageStream({ target: 7 })));
    expect(chunks.filter(({ type }) => type.startsWith('tool-output'))).toMatchObject([
      { type: 'tool-output-error', errorText: 'The tool failed.' },
    ]);
  });

  it('get no thinking if it is filtered out before', async () => {
    const event$ = scenario('text and thinking').pipe(
      filter((event) => event.type !== 'reasoningChunk' || event.kind !== 'thinking'),
    );
    const types = (await all(event$.pipe(toUiMessageStream()))).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith('reasoning'))).toEqual([]);
  });
});
