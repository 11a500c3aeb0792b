import { EventType } from '@ag-ui/core';
import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  type MillraceError,
  textBlock,
  textOf,
  tool,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import { marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import { cost } from 'millrace/traffic';
import { concat, from, lastValueFrom, map, type Observable, of, toArray } from 'rxjs';
import { eventOf, hello, nested, refused } from '../events.test-support.js';
import { complaintsOf } from '../read-as-client.test-support.js';
import { scenarios } from '../scenarios.test-support.js';
import { toAgUi } from './to-ag-ui.js';

const all = <T>(value$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(value$.pipe(toArray()));

const scenario = (name: string) => {
  const found = scenarios.find((it) => it.name === name);
  if (found === undefined) throw new Error(name);
  return found.stream$({ callId: 'c' });
};

const begun = eventOf({ type: 'preCall', input: [] }, { iteration: 0 });
const run = { threadId: 'c', runId: 'c' };

describe('toAgUi', () => {
  it('I9: streams a call as one run while it runs', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model('5ms h 9ms (tf|)');
      const event$ = createAgent({ model: slow })
        .stream$('?', { callId: 'c', scheduler })
        .pipe(toAgUi({ threadId: 'thread', runId: 'run' }));
      expectObservable(event$).toBe('(sO) 1ms (hmd) 5ms (eExtTcf|)', {
        s: {
          type: 'RUN_STARTED',
          threadId: 'thread',
          runId: 'run',
          protocolVersion: '1.0',
        },
        O: { type: 'STEP_STARTED', stepName: '1' },
        h: { type: 'REASONING_START', messageId: 'c/1/thinking/1' },
        m: { type: 'REASONING_MESSAGE_START', messageId: 'c/1/thinking/1', role: 'reasoning' },
        d: { type: 'REASONING_MESSAGE_CONTENT', messageId: 'c/1/thinking/1', delta: 'h' },
        e: { type: 'REASONING_MESSAGE_END', messageId: 'c/1/thinking/1' },
        E: { type: 'REASONING_END', messageId: 'c/1/thinking/1' },
        x: { type: 'TEXT_MESSAGE_START', messageId: 'c/1', role: 'assistant' },
        t: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'c/1', delta: 't' },
        T: { type: 'TEXT_MESSAGE_END', messageId: 'c/1' },
        c: { type: 'STEP_FINISHED', stepName: '1' },
        f: {
          type: 'RUN_FINISHED',
          threadId: 'thread',
          runId: 'run',
          outcome: { type: 'success' },
          metadata: { millrace: { reason: 'answer', iterations: 1 } },
        },
      });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^ 14ms !');
    });
  });

  it('shows a tool call from its first delta to its result', async () => {
    const events = await all(scenario('progress').pipe(toAgUi()));
    const toolCallId = 'c/1/u';
    expect(events.slice(2, 8)).toEqual([
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'upload', parentMessageId: 'c/1' },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: '{}' },
      { type: 'TOOL_CALL_END', toolCallId },
      {
        type: 'CUSTOM',
        name: 'millrace.tool_progress',
        value: { toolCallId, value: { percent: '50' } },
      },
      {
        type: 'CUSTOM',
        name: 'millrace.tool_progress',
        value: { toolCallId, value: { percent: '100' } },
      },
      {
        type: 'TOOL_CALL_RESULT',
        messageId: 'c/1/u/result',
        toolCallId,
        role: 'tool',
        content: 'Done.',
        metadata: { millrace: { status: 'done', ms: expect.any(Number), details: { a: 1 } } },
      },
    ]);
  });

  it('T13: gives every shown tool call a result, even one that did not run, except one that waits', async () => {
    for (const { name, stream$ } of scenarios) {
      const events = await all(stream$().pipe(toAgUi()));
      const waiting = name === 'a suspension' ? 1 : 0;
      const ids = (type: EventType) =>
        events.flatMap((event) =>
          event.type === type && 'toolCallId' in event ? [event.toolCallId] : [],
        );
      const answered = ids(EventType.TOOL_CALL_START).slice(0, -waiting || undefined);
      expect(ids(EventType.TOOL_CALL_RESULT).toSorted()).toEqual(answered.toSorted());
      expect(ids(EventType.TOOL_CALL_END).toSorted()).toEqual(
        ids(EventType.TOOL_CALL_START).toSorted(),
      );
    }
  });

  it('shows arguments that arrive before the name of their tool after it', async () => {
    const events = await all(scenario('hostile names and values').pipe(toAgUi()));
    const args = events.flatMap((event) =>
      event.type === EventType.TOOL_CALL_ARGS && event.toolCallId === 'c/1/n' ? [event.delta] : [],
    );
    expect(args).toEqual(['{"late":', '1}']);
  });

  it('knows the tool that asks an agent more than once', async () => {
    const below = () => createAgent({ name: 'below', model: scriptedModel([text('Yes.')]) });
    const twice = tool({
      name: 'twice',
      description: 'Asks twice.',
      run: (_input, parent) =>
        concat(below().call$('1', { parent }), below().call$('2', { parent })).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('twice', {}, 't')], [text('So.')]);
    const events = await all(
      createAgent({ model, tools: [twice] })
        .stream$('?', { callId: 'c' })
        .pipe(toAgUi()),
    );
    expect(
      events.flatMap((it) =>
        it.type === EventType.SUBAGENT_STARTED ? [[it.subagentRunId, it.parentToolCallId]] : [],
      ),
    ).toEqual([
      ['c/t', 'c/1/t'],
      ['c/t+2', 'c/1/t'],
    ]);
  });

  it('shows edits by interceptors to arguments that were already complete', async () => {
    const event$ = scenario('a use of a tool that is edited twice');
    const edits = (await all(event$.pipe(toAgUi()))).filter(
      (event) => 'name' in event && event.name === 'millrace.tool_edited',
    );
    const edited = (city: string) => ({
      type: 'CUSTOM',
      name: 'millrace.tool_edited',
      value: { toolCallId: 'c/1/a', toolCallName: 'weather', input: { city } },
    });
    expect(edits).toEqual([edited('Rome'), edited('Paris')]);
    const plain = await all(scenario('parallel tools').pipe(toAgUi()));
    expect(JSON.stringify(plain)).not.toContain('tool_edited');
  });

  it('voids text that was shown and discarded', async () => {
    const events = await all(scenario('a message that is begun anew').pipe(toAgUi()));
    expect(events.filter(({ type }) => type === EventType.CUSTOM)).toEqual([
      {
        type: 'CUSTOM',
        name: 'millrace.retry',
        value: { attempt: 1, attempts: 3, waitMs: 0, code: 'connection' },
      },
      { type: 'CUSTOM', name: 'millrace.discarded', value: { messageId: 'c/1' } },
    ]);
  });

  it('I10: ends a call that failed with RUN_ERROR, and completes', async () => {
    const failed = eventOf({ type: 'error', error: refused });
    expect(await all(of(begun, failed).pipe(toAgUi()))).toEqual([
      { type: 'RUN_STARTED', ...run, protocolVersion: '1.0' },
      {
        type: 'RUN_ERROR',
        code: 'rateLimited',
        message: 'There are too many requests right now. Please try again in a moment.',
      },
    ]);
    const onError = ({ code }: MillraceError) => `Sorry: ${code}`;
    expect((await all(of(begun, failed).pipe(toAgUi({ onError })))).at(-1)).toMatchObject({
      message: 'Sorry: rateLimited',
    });
  });

  it.each([
    ['an interrupt with a message', 'interrupted'],
    ['a vetoed answer', 'stopped'],
    ['an abort', 'aborted'],
  ])('%s is a cancelled run', async (name, reason) => {
    const events = await all(scenario(name).pipe(toAgUi()));
    expect(events.at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'cancelled' },
      metadata: { millrace: { reason } },
    });
    expect(events.at(-1)).not.toHaveProperty('result');
  });

  it('names the sub-agent of each event, and counts the usage of all of them', async () => {
    const events = await all(nested().stream$('?', { callId: 'c' }).pipe(toAgUi()));
    expect(complaintsOf(events)).toEqual([]);
    expect(events.filter(({ type }) => type.startsWith('SUBAGENT'))).toEqual([
      {
        type: 'SUBAGENT_STARTED',
        subagentRunId: 'c/t',
        name: 'second',
        parentToolCallId: 'c/1/t',
      },
      {
        type: 'SUBAGENT_STARTED',
        subagentRunId: 'c/t/t',
        name: 'third',
        parentSubagentRunId: 'c/t',
        parentToolCallId: 'c/t/1/t',
      },
      {
        type: 'SUBAGENT_FINISHED',
        subagentRunId: 'c/t/t',
        metadata: { millrace: { reason: 'answer' } },
      },
      {
        type: 'SUBAGENT_FINISHED',
        subagentRunId: 'c/t',
        metadata: { millrace: { reason: 'answer' } },
      },
    ]);
    const tagged = events.flatMap((event) =>
      'messageId' in event && 'subagentRunId' in event
        ? [`${event.subagentRunId ?? ''} ${event.messageId ?? ''}`]
        : [],
    );
    expect(new Set(tagged)).toEqual(new Set(['c/t/t c/t/t/1', 'c/t c/t/1/t/result', 'c/t c/t/2']));
    // The cache is a part of the input here, and is not in Millrace's count of it.
    expect(events.at(-1)).toMatchObject({
      usage: [
        {
          inputTokens: 615,
          outputTokens: 50,
          totalTokens: 665,
          cachedInputTokens: 100,
          cacheWriteInputTokens: 15,
        },
      ],
    });
  });

  it('shows what a call costs, as far as it is known', async () => {
    const model = scriptedModel([text('Hi.'), { type: 'usage', usage: { inputTokens: 3 } }]);
    const use = [cost({ currency: 'EUR', date: '2026-11-30', prices: {} })];
    const events = await all(
      createAgent({ model, use }).stream$('?', { callId: 'c' }).pipe(toAgUi()),
    );
    expect(events.at(-1)).toMatchObject({
      metadata: { millrace: { cost: { currency: 'EUR', atLeast: 0 } } },
    });
    expect(JSON.stringify(events.at(-1))).not.toContain('total"');
  });

  it('reports the failure of a sub-agent with the error text for clients', async () => {
    const events = await all(scenario('a sub-agent that fails').pipe(toAgUi()));
    expect(events.find(({ type }) => type === EventType.SUBAGENT_ERROR)).toEqual({
      type: 'SUBAGENT_ERROR',
      subagentRunId: 'c/f',
      message: 'The service did not respond as expected. Please try again.',
      code: 'server',
    });
    const below = { callId: 'c/t', rootId: 'c', parentId: 'c', iteration: 0 };
    const cut = of(begun, eventOf({ type: 'preCall', input: [] }, below));
    expect((await all(cut.pipe(toAgUi()))).at(-2)).toEqual({
      type: 'SUBAGENT_ERROR',
      subagentRunId: 'c/t',
      message: 'The request was cancelled.',
      code: 'aborted',
    });
  });

  it('gives the structured output as the result of the run', async () => {
    const events = await all(scenario('structured output').pipe(toAgUi()));
    expect(events.at(-1)).toMatchObject({ result: { city: 'Oslo', days: [1, 2] } });
  });

  it('sends notices about steering and model fallbacks', async () => {
    const message = { id: 's', role: 'user', content: [textBlock('Shorter!')] } as const;
    const steered = eventOf({ type: 'steered', message });
    expect((await all(of(begun, steered).pipe(toAgUi())))[1]).toEqual({
      type: 'CUSTOM',
      name: 'millrace.steered',
      value: { messageId: 's', text: 'Shorter!' },
    });
    const events = await all(scenario('a fallback').pipe(toAgUi()));
    expect(events[3]).toEqual({
      type: 'CUSTOM',
      name: 'millrace.fallback',
      value: { code: 'server' },
    });
  });

  it('S5: sends states as JSON Patches, nothing that memory omits, and each approval once', async () => {
    const message = { id: 'm', role: 'user', content: [] } as const;
    const groups = { name: 'a/b', state: { web: true }, patches: [] };
    const events$ = of(
      begun,
      eventOf({ type: 'stateChanged', ...groups }),
      eventOf({ type: 'stateChanged', name: 'approvals', state: [], patches: [] }),
      eventOf({ type: 'messagesAppended', messages: [message] }),
      eventOf({ type: 'messagesRemoved', ids: ['m'] }),
    );
    const told = (await all(events$.pipe(toAgUi()))).slice(1, -1);
    expect(told).toEqual([
      { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a~1b', value: { web: true } }] },
    ]);
  });

  it('sends notices about sources and queued calls', async () => {
    const passages = [{ source: 'a.md', text: '.' }];
    const events$ = of(
      begun,
      eventOf({ type: 'queued', why: 'calls', ahead: 2 }),
      eventOf({ type: 'modelWaiting', model: 'm', waitedMs: 10_000 }),
      eventOf({ type: 'retrieved', passages }),
    );
    expect((await all(events$.pipe(toAgUi()))).slice(1, 4)).toEqual([
      { type: 'CUSTOM', name: 'millrace.queued', value: { ahead: 2 } },
      { type: 'CUSTOM', name: 'millrace.waiting', value: { waitedMs: 10_000 } },
      { type: 'CUSTOM', name: 'millrace.sources', value: [{ number: 1, source: 'a.md' }] },
    ]);
  });

  it('sends notices about waiting tools and repaired arguments', async () => {
    const custom = async (name: string) =>
      (await all(scenario(name).pipe(toAgUi()))).flatMap((it) =>
        it.type === EventType.CUSTOM && !it.name.startsWith('millrace.tool_')
          ? [[it.name, it.value, it.subagentRunId]]
          : [],
      );
    const use = (toolCallId: string, toolCallName: string) => ({
      ...{ toolCallId, toolCallName, localId: toolCallId.slice(-1) },
    });
    expect(await custom('a suspension')).toEqual([
      ['millrace.suspended', { ...use('c/1/p', 'pay'), request: { amount: 5 } }, undefined],
    ]);
    expect(await custom('arguments that were repaired')).toEqual([
      ['millrace.repaired', use('c/1/a', 'weather'), undefined],
    ]);
    const below = use('c/w/1/a', 'weather');
    const inputSchema = {
      ...{ type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
    };
    expect(await custom('an approval below')).toEqual([
      ['millrace.approval_requested', { ...below, inputSchema }, 'c/w'],
      ['millrace.approval_decided', { ...below, approved: true }, 'c/w'],
    ]);
  });

  it('X10: hides the reason for a denial, and shows the denial', async () => {
    const events = await all(scenario('an approval').pipe(toAgUi()));
    expect(JSON.stringify(events)).not.toContain('sk-hunter2');
    const results = events.filter(({ type }) => type === EventType.TOOL_CALL_RESULT);
    expect(results).toMatchObject([
      { content: 'Rain in Paris.', metadata: { millrace: { status: 'done' } } },
      { content: 'This tool call was denied.', metadata: { millrace: { status: 'denied' } } },
    ]);
    const edits = events.filter((it) => 'name' in it && it.name === 'millrace.tool_edited');
    expect(edits).toMatchObject([{ value: { toolCallId: 'c/1/a', input: { city: 'Paris' } } }]);
  });

  it('shows the media of messages and results', async () => {
    const events = await all(scenario('media').pipe(toAgUi()));
    expect(events).toContainEqual({
      type: 'CUSTOM',
      name: 'millrace.media',
      value: {
        messageId: 'c/2',
        part: { type: 'image', source: { type: 'url', value: 'https://a.b/c' } },
      },
    });
  });

  it('uses the id of the session, or of the call, for the conversation', async () => {
    const session = sessions(createAgent({ model: scriptedModel([text('Hi.')]) })).open('user-42');
    const events = await all(session.stream$('?', { callId: 'c' }).pipe(toAgUi()));
    expect(events[0]).toMatchObject({ threadId: 'user-42', runId: 'c' });
  });

  it('shows the calls of a session as one run after the other', async () => {
    const events = await all(
      from([...(await hello('one')), ...(await hello('other'))]).pipe(toAgUi()),
    );
    expect(complaintsOf(events)).toEqual([]);
    expect(events.flatMap((it) => ('runId' in it ? [it.runId] : []))).toEqual([
      'one',
      'one',
      'other',
      'other',
    ]);
  });

  it('refuses unknown options, and ignores unknown events', async () => {
    expect(() => toAgUi({ threadID: 'x' } as object)).toThrow(/no option 'threadID'/);
    expect(() => toAgUi({ runId: 1 } as unknown as object)).toThrow(/'runId' must be a string/);
    const strange = { ...begun, type: 'unheardOf' } as unknown as AgentEvent;
    expect(await all(of(begun, strange).pipe(toAgUi()))).toHaveLength(2);
  });
});
