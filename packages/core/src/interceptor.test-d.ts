import { expectTypeOf } from 'expect-type';
import { identity, map, type Observable } from 'rxjs';
import {
  type AgentEvent,
  createAgent,
  type EventOf,
  type Model,
  on,
  onCall,
  only,
  type Reply,
} from './index.js';

declare const model: Model;
declare const events$: Observable<AgentEvent>;

on(
  'preActing',
  map((event) => {
    expectTypeOf(event).toEqualTypeOf<EventOf<'preActing'>>();
    expectTypeOf(event.toolUse.name).toBeString();
    return { ...event, toolUse: { ...event.toolUse, input: {} } };
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
expectTypeOf(agent.stream('?')).toEqualTypeOf<AsyncIterable<AgentEvent>>();

// @ts-expect-error stream() brings its own demand
agent.stream('?', { demand: undefined });

// @ts-expect-error an agent needs a model
createAgent({});

// @ts-expect-error an option that does not exist
void agent.call$('?', { temprature: 1 });
