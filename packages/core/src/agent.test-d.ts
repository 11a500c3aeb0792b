import { expectTypeOf } from 'expect-type';
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  createAgent,
  type Model,
  type PartialOf,
  partialOutput$,
  type Reply,
} from './index.js';
import { sessions } from './sessions/index.js';

declare const model: Model;

const place = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
} as const;
const sum = z.object({ sum: z.number() });

const plain = createAgent({ model });
expectTypeOf(plain.call('?', { output: sum })).resolves.toEqualTypeOf<Reply<{ sum: number }>>();
expectTypeOf(plain.call$('?', { request: { temperature: 1 } })).toEqualTypeOf<
  Observable<Reply<undefined>>
>();

const typed = createAgent({ model, output: place });
expectTypeOf(typed).toEqualTypeOf<Agent<{ city: string }>>();
expectTypeOf(typed.call('?')).resolves.toEqualTypeOf<Reply<{ city: string }>>();
expectTypeOf(sessions(typed).open('s').call('?')).resolves.toEqualTypeOf<Reply<{ city: string }>>();
expectTypeOf(typed.call('?', { output: sum })).resolves.toEqualTypeOf<Reply<{ sum: number }>>();
expectTypeOf(
  typed.call('?', {
    output: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  }),
).resolves.toHaveProperty('output');

// Any agent is an agent, and any reply a reply.
const agents: readonly Agent[] = [plain, typed];
const reply: Reply = await typed.call('?');
expectTypeOf(agents).toExtend<readonly Agent[]>();
expectTypeOf(reply).toExtend<Reply>();

// @ts-expect-error the output of a call has no defaults
createAgent({ model, defaults: { output: sum } });

// @ts-expect-error a schema is no text
void plain.call('?', { output: 'text' });

expectTypeOf(partialOutput$<{ city: string; tags: string[] }>(plain.events$)).toEqualTypeOf<
  Observable<{ readonly city?: string; readonly tags?: readonly string[] }>
>();
expectTypeOf<PartialOf<number>>().toEqualTypeOf<number>();
