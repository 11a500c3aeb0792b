import { describe, expect, it, jest } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  type MillraceError,
  textOf,
  tool,
  toReadableStream,
} from 'millrace';
import { marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  catchError,
  concat,
  concatMap,
  finalize,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  throwError,
} from 'rxjs';
import { chunkComplaints } from './check-chunks.test-support.js';
import { eventOf, refused } from './events.test-support.js';
import {
  agUiResponse,
  type OpenCall,
  toAgUi,
  toUiMessageStream,
  type UiMessageChunk,
  uiMessageStreamResponse,
} from './index.js';
import {
  complaintsOf,
  readAsAgUi,
  readAsAiSdk,
  refusedChunks,
} from './read-as-client.test-support.js';

const secret = 'sk-hunter2';
const bug = new TypeError(`The key ${secret} is none.`);

const below = tool({
  name: 'ask',
  description: 'Asks another.',
  run: (_input, parent) =>
    createAgent({ name: 'below', model: scriptedModel([text('Below.')]) })
      .call$('?', { parent })
      .pipe(map(textOf)),
});
const event$ = (): Observable<AgentEvent> =>
  createAgent({
    model: scriptedModel([text('I ask. '), toolCall('ask', {}, 'w')], [text('So.')]),
    tools: [below],
  }).stream$('?', { callId: 'c' });
const failing$ = (): Observable<AgentEvent> =>
  createAgent({ model: scriptedModel(() => throwError(() => refused)) }).stream$('?', {
    callId: 'c',
  });

/** The operator of a user, with a bug. */
const breakAt = (isIt: (event: AgentEvent) => boolean, thrown: unknown = bug) =>
  concatMap((event: AgentEvent) =>
    isIt(event)
      ? concat(
          of(event),
          throwError(() => thrown),
        )
      : of(event),
  );
const chunk = (kind: string) => (event: AgentEvent) =>
  event.type === 'reasoningChunk' && event.kind === kind;
const masked = 'Something went wrong.';

interface Case {
  readonly name: string;
  readonly open: OpenCall;
  /** What the client shows. */
  readonly errors: readonly string[];
  /** How the streams end. */
  readonly chunks: readonly string[];
  readonly events: readonly string[];
  /** What the hook hears of. */
  readonly reported?: readonly unknown[];
}

const cases: readonly Case[] = [
  {
    name: 'before any event',
    open: () => throwError(() => bug),
    errors: [masked],
    chunks: ['message-metadata', 'error', 'finish'],
    events: ['RUN_ERROR'],
  },
  {
    name: 'thrown by what opens the call',
    open: () => {
      throw bug;
    },
    errors: [masked],
    chunks: ['message-metadata', 'error', 'finish'],
    events: ['RUN_ERROR'],
  },
  {
    name: 'at the first event',
    open: () =>
      event$().pipe(
        map(() => {
          throw bug;
        }),
      ),
    errors: [masked],
    chunks: ['message-metadata', 'error', 'finish'],
    events: ['RUN_ERROR'],
  },
  {
    name: 'after partial text',
    open: () => event$().pipe(breakAt(chunk('text'))),
    errors: [masked],
    chunks: ['text-delta', 'text-end', 'finish-step', 'message-metadata', 'error', 'finish'],
    events: ['TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED', 'RUN_ERROR'],
  },
  {
    name: 'after a part of the arguments of a tool',
    open: () => event$().pipe(breakAt(chunk('toolInput'))),
    errors: [masked],
    chunks: ['tool-output-error', 'finish-step', 'message-metadata', 'error', 'finish'],
    events: ['TOOL_CALL_END', 'TOOL_CALL_RESULT', 'STEP_FINISHED', 'RUN_ERROR'],
  },
  {
    name: 'while a tool runs',
    open: () => event$().pipe(breakAt(({ type }) => type === 'preActing')),
    errors: [masked],
    chunks: ['tool-output-error', 'finish-step', 'message-metadata', 'error', 'finish'],
    events: ['TOOL_CALL_RESULT', 'STEP_FINISHED', 'RUN_ERROR'],
  },
  {
    name: 'while a sub-agent speaks',
    open: () => event$().pipe(breakAt((it) => it.parentId !== undefined && chunk('text')(it))),
    errors: [masked],
    chunks: [
      'data-agent',
      'tool-output-error',
      'finish-step',
      'message-metadata',
      'error',
      'finish',
    ],
    events: ['SUBAGENT_ERROR', 'TOOL_CALL_RESULT', 'STEP_FINISHED', 'RUN_ERROR'],
  },
  {
    name: 'after the finish',
    open: () => event$().pipe(breakAt((it) => it.type === 'postCall' && it.parentId === undefined)),
    errors: [],
    chunks: ['finish'],
    events: ['RUN_FINISHED'],
  },
  {
    name: 'another one than the error event says',
    open: () => failing$().pipe(catchError(() => throwError(() => bug))),
    errors: [refused.userMessage],
    chunks: ['error', 'finish'],
    events: ['RUN_ERROR'],
    reported: [refused, { code: 'unknown', cause: bug }],
  },
  {
    name: 'of the agent itself',
    open: failing$,
    errors: [refused.userMessage],
    chunks: ['error', 'finish'],
    events: ['RUN_ERROR'],
    reported: [refused],
  },
  {
    name: 'that is no Error',
    open: () => event$().pipe(breakAt(chunk('text'), secret)),
    errors: [masked],
    chunks: ['error', 'finish'],
    events: ['RUN_ERROR'],
    reported: [{ code: 'unknown', cause: secret }],
  },
  {
    name: 'that is undefined',
    open: () =>
      event$().pipe(
        map((): AgentEvent => {
          throw undefined;
        }),
      ),
    errors: [masked],
    chunks: ['error', 'finish'],
    events: ['RUN_ERROR'],
    reported: [{ code: 'unknown' }],
  },
];

/** The data of server-sent events. */
const dataOf = (body: string): readonly string[] =>
  body.split('\n\n').flatMap((line) => (line === '' ? [] : [line.replace(/^data: /, '')]));
const typesOf = (values: readonly object[], last: number): readonly unknown[] =>
  values.slice(-last).map((value) => Reflect.get(value, 'type'));

describe('X21: for any failure, the stream ends as its protocol demands', () => {
  const expected = ({ reported = [{ code: 'unknown', cause: bug }] }: Case) => reported;

  it.each(cases)('AI SDK: an error $name', async (it) => {
    const onError = jest.fn();
    const body = await uiMessageStreamResponse(it.open, { onError }).text();
    expect(body).not.toContain(secret);
    const data = dataOf(body);
    expect(data.at(-1)).toBe('[DONE]');
    const chunks = data.slice(0, -1).map((json): UiMessageChunk => JSON.parse(json));
    expect(typesOf(chunks, it.chunks.length)).toEqual(it.chunks);
    expect(await refusedChunks(chunks)).toEqual([]);
    if (chunks[0]?.type === 'start') expect(chunkComplaints(chunks)).toEqual([]);
    const { errors } = await readAsAiSdk(chunks);
    expect(errors).toEqual(it.errors.map((error) => `Error: ${error}`));
    expect(onError.mock.calls.flat()).toMatchObject(expected(it));
  });

  it.each(cases)('AG-UI: an error $name', async (it) => {
    const onError = jest.fn();
    const body = await agUiResponse(it.open, { onError }).text();
    expect(body).not.toContain(secret);
    const events = dataOf(body).map((json) => JSON.parse(json));
    expect(typesOf(events, it.events.length)).toEqual(it.events);
    expect(complaintsOf(events)).toEqual([]);
    expect((await readAsAgUi(events)).errors).toEqual(it.errors);
    expect(onError.mock.calls.flat()).toMatchObject(expected(it));
  });

  it('completes in the frame of the error, and leaves the events', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const begun = eventOf({ type: 'preCall', input: [] }, { iteration: 0 });
      const source$ = cold('b----#', { b: begun }, bug);
      const type$ = source$.pipe(
        toUiMessageStream(),
        map(({ type }) => type),
      );
      expectObservable(type$).toBe('s----(mef|)', {
        ...{ s: 'start', m: 'message-metadata', e: 'error', f: 'finish' },
      });
      expectSubscriptions(source$.subscriptions).toBe('^----!');
    });
  });
});

describe('I17: a hook for errors', () => {
  const failed = (onError: (error: MillraceError) => unknown) => [
    uiMessageStreamResponse(failing$, { onError }).text(),
    agUiResponse(failing$, { onError }).text(),
  ];

  it.each([
    [
      'that throws',
      () => {
        throw new Error(secret);
      },
    ],
    ['that rejects', () => Promise.reject(new Error(secret))],
    ['that returns no string', () => ({ secret })],
  ])('%s changes nothing', async (_, onError) => {
    for (const body of await Promise.all(failed(onError))) {
      expect(body).toContain(refused.userMessage);
      expect(body).not.toContain(secret);
    }
    // What a hook rejects with would end the process by now.
    await new Promise(setImmediate);
  });

  it('replaces the error text by the string that a hook returns', async () => {
    for (const body of await Promise.all(failed(({ code }) => `Sorry: ${code}`))) {
      expect(body).toContain('Sorry: rateLimited');
      expect(body).not.toContain(refused.userMessage);
    }
  });

  it('reports neither a client that leaves nor errors after that', async () => {
    const onError = jest.fn();
    const source$ = new Subject<AgentEvent>();
    const left = jest.fn();
    const body = uiMessageStreamResponse(
      () => concat(event$().pipe(breakAt(() => false)), NEVER).pipe(finalize(left)),
      { onError },
    ).body?.getReader();
    await body?.read();
    await body?.cancel();
    expect(left).toHaveBeenCalledTimes(1);

    const reader = toReadableStream(() => source$.pipe(toAgUi({ onError }))).getReader();
    const read = reader.read();
    await new Promise(setImmediate);
    source$.next(eventOf({ type: 'preCall', input: [] }, { iteration: 0 }));
    await read;
    await reader.cancel();
    source$.error(bug);
    expect(onError).not.toHaveBeenCalled();
  });
});
