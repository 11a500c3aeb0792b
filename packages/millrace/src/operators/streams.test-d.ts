import { expectTypeOf } from 'expect-type';
import { type GroupedObservable, map, type Observable, of } from 'rxjs';
import type { DemandGate } from '../flow/demand.js';
import type { AgentEvent, EventOf } from '../events.js';
import { byCall, only, replies, text, toolRuns, usage$ } from './event-operators.js';
import type { Reply, ToolRun } from '../values/reply.js';
import type { Usage } from '../values/usage.js';
import { bounded, coalesceMap, sampleDeltas } from './bounded.js';
import { fromReadableStream, toReadableStream } from './readable-stream.js';

declare const event$: Observable<AgentEvent>;
declare const demand: DemandGate;
declare const numbers: ReadableStream<number>;

expectTypeOf(event$.pipe(byCall())).toEqualTypeOf<
  Observable<GroupedObservable<string, AgentEvent>>
>();
expectTypeOf(event$.pipe(text())).toEqualTypeOf<Observable<string>>();
expectTypeOf(event$.pipe(replies({ subAgents: true }))).toEqualTypeOf<Observable<Reply>>();
expectTypeOf(event$.pipe(toolRuns())).toEqualTypeOf<Observable<ToolRun>>();
expectTypeOf(event$.pipe(usage$)).toEqualTypeOf<Observable<Usage>>();

// What goes in is what the project gets, and what is let through.
type Chunk = EventOf<'reasoningChunk'>;
expectTypeOf(event$.pipe(sampleDeltas(16))).toEqualTypeOf<Observable<AgentEvent>>();
expectTypeOf(event$.pipe(only('reasoningChunk'), sampleDeltas(16))).toEqualTypeOf<
  Observable<Chunk>
>();
expectTypeOf(
  event$.pipe(
    only('reasoningChunk'),
    coalesceMap((event) => of(event.delta.length)),
  ),
).toEqualTypeOf<Observable<number>>();
expectTypeOf(
  event$.pipe(coalesceMap((event) => (event.seq > 1 ? of(1) : Promise.resolve('')))),
).toEqualTypeOf<Observable<string | number>>();
expectTypeOf(
  event$.pipe(bounded((event) => of(event.seq), { overflow: 'pause', demand })),
).toEqualTypeOf<Observable<number>>();

expectTypeOf(fromReadableStream(numbers)).toEqualTypeOf<Observable<number>>();
expectTypeOf(fromReadableStream(() => numbers, demand)).toEqualTypeOf<Observable<number>>();
expectTypeOf(toReadableStream(() => event$.pipe(text()))).toEqualTypeOf<ReadableStream<string>>();

// @ts-expect-error a pause needs the gate
bounded(() => of(1), { overflow: 'pause' });
// @ts-expect-error the gate's own mark is the bound
bounded(() => of(1), { overflow: 'pause', demand, max: 3 });
// @ts-expect-error only a pause has a gate
bounded(() => of(1), { overflow: 'error', demand });
// @ts-expect-error texts cannot be merged any more
void of('text').pipe(coalesceMap((delta) => of(delta)));
// @ts-expect-error what is merged are events
void map(() => 'text')(event$).pipe(sampleDeltas(16));
