import { expectTypeOf } from 'expect-type';
import type { AgentEvent, EventOf, Events, Reply } from './index.js';
import type { EventType, ReportedPayload } from './events.js';
import type { RecalledMemory } from './layers/long-term-memory/index.js';
import type { RetrievedPassage } from './layers/retrieval/index.js';

// A feature declares its events and its fields of the reply by merging; scripts/types/core-alone.mts is the program without it.
expectTypeOf<EventOf<'retrieved'>['passages']>().toEqualTypeOf<readonly RetrievedPassage[]>();
expectTypeOf<EventOf<'recalled'>['memories']>().toEqualTypeOf<readonly RecalledMemory[]>();
expectTypeOf<Reply['sources']>().toEqualTypeOf<readonly RetrievedPassage[] | undefined>();

declare module './events.js' {
  interface Events {
    readonly ofATest: { readonly count: number };
  }
}

expectTypeOf<Extract<ReportedPayload, { type: 'ofATest' }>['count']>().toBeNumber();
expectTypeOf<Extract<EventType, 'ofATest'>>().toEqualTypeOf<'ofATest'>();
expectTypeOf<Exclude<keyof Events, EventType>>().toBeNever();

declare const event: AgentEvent;
if (event.type === 'ofATest') expectTypeOf(event.count).toBeNumber();
