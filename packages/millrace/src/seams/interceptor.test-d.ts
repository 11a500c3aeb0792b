import { expectTypeOf } from 'expect-type';
import { delay, identity, map, type Observable } from 'rxjs';
import {
  type AgentEvent,
  type ContentChunk,
  createAgent,
  type EventOf,
  type EventStream,
  guardOutput,
  type InputMessage,
  logEvents,
  type Model,
  on,
  onCall,
  only,
  prepare,
  type Reply,
  stopMessage,
  transformChunks,
  watch,
} from '../index.js';
import type { PreparedOptions } from './preparation.js';
import { insertBefore, reasoning } from '../phases/index.js';
import { sessions, type SteerOutcome } from '../layers/sessions/index.js';
import { redact } from '../layers/guards/index.js';

declare const model: Model;
declare const events$: Observable<AgentEvent>;

on(
  'preActing',
  map((event) => {
    expectTypeOf(event).toEqualTypeOf<EventOf<'preActing'>>();
    expectTypeOf(event.toolCall.name).toBeString();
    return { ...event, toolCall: { ...event.toolCall, input: {} } };
  }),
);

onCall('postCall', ({ sessionId }) => {
  expectTypeOf(sessionId).toEqualTypeOf<string | undefined>();
  return identity;
});

// @ts-expect-error a chunk can only be watched
on('reasoningChunk', identity);

on(
  'postActing',
  // @ts-expect-error an interceptor keeps the type of its event
  map(() => 'result'),
);

expectTypeOf(events$.pipe(only('reasoningChunk'))).toEqualTypeOf<
  Observable<EventOf<'reasoningChunk'>>
>();
expectTypeOf(events$.pipe(only('preCall', 'postCall'))).toEqualTypeOf<
  Observable<EventOf<'preCall' | 'postCall'>>
>();

const agent = createAgent({ model });
expectTypeOf(agent.call$('?')).toEqualTypeOf<Observable<Reply<undefined>>>();
expectTypeOf(agent.stream('?')).toEqualTypeOf<EventStream<undefined>>();

// @ts-expect-error stream() brings its own demand
agent.stream('?', { demand: undefined });

// @ts-expect-error an agent needs a model
createAgent({});

// @ts-expect-error an option that does not exist
void agent.call$('?', { temprature: 1 });

prepare(
  map((asked) => {
    expectTypeOf(asked.input).toEqualTypeOf<readonly InputMessage[]>();
    expectTypeOf(asked.options).toEqualTypeOf<PreparedOptions>();
    return { ...asked, input: [...asked.input, { role: 'user', content: [] }] };
  }),
);

// @ts-expect-error what a call is prepared with cannot be a text
prepare(map(() => 'input'));

prepare(
  // @ts-expect-error a scheduler is not a thing to prepare
  map((asked) => ({ ...asked, options: { scheduler: asked } })),
);

transformChunks(
  map((chunk) => {
    expectTypeOf(chunk).toEqualTypeOf<ContentChunk>();
    return chunk.type === 'text' ? stopMessage('No.') : chunk;
  }),
);

// @ts-expect-error a finish is not for a transform to make
transformChunks(map(() => ({ type: 'finish', finish: 'stop' })));

watch((event, call) => {
  expectTypeOf(event).toEqualTypeOf<AgentEvent>();
  expectTypeOf(call.metadata).toEqualTypeOf<Readonly<Record<string, string>>>();
});

createAgent({ model, use: [redact('key'), guardOutput(/key/), logEvents(console)] });

createAgent({ model, use: [insertBefore(reasoning, ({ scheduler }) => delay(1, scheduler))] });

// @ts-expect-error a phase is made for each call
createAgent({ model, use: [insertBefore(reasoning, delay(1))] });

sessions(createAgent({ model }), { onBusy: 'switch' });

// @ts-expect-error there is no such thing to do
sessions(createAgent({ model }), { onBusy: 'wait' });

declare const steered: SteerOutcome;
if (steered.status === 'delivered') expectTypeOf(steered.iteration).toBeNumber();
// @ts-expect-error only a message that was delivered has an iteration
else expectTypeOf(steered.iteration).toBeNumber();
