import { expectTypeOf } from 'expect-type';
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  createAgent,
  type Layer,
  type Model,
  output,
  partialOutput$,
  type Reply,
} from './index.js';
import type { PartialOf } from './layers/output.js';
import type { Journal } from './journal/index.js';
import { jsonSchema } from './schema/index.js';
import { sessions } from './layers/sessions/index.js';

declare const model: Model;

const place = jsonSchema({
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
});
const sum = z.object({ sum: z.number() });

const plain = createAgent({ model });
expectTypeOf(plain.call('?', { use: [output(sum)] })).resolves.toEqualTypeOf<
  Reply<{ sum: number }>
>();
expectTypeOf(plain.call$('?', { request: { temperature: 1 } })).toEqualTypeOf<
  Observable<Reply<undefined>>
>();

const typed = createAgent({ model, use: [output(place)] });
expectTypeOf(typed).toEqualTypeOf<Agent<{ city: string }>>();
expectTypeOf(typed.call('?')).resolves.toEqualTypeOf<Reply<{ city: string }>>();
expectTypeOf(sessions(typed).open('s').call('?')).resolves.toEqualTypeOf<Reply<{ city: string }>>();
expectTypeOf(typed.call('?', { use: [output(sum)] })).resolves.toEqualTypeOf<
  Reply<{ sum: number }>
>();
expectTypeOf(
  typed.call('?', {
    use: [
      output(
        jsonSchema({ type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }),
      ),
    ],
  }),
).resolves.toHaveProperty('output');

// Any agent is an agent, and any reply a reply.
const agents: readonly Agent[] = [plain, typed];
const reply: Reply = await typed.call('?');
expectTypeOf(agents).toExtend<readonly Agent[]>();
expectTypeOf(reply).toExtend<Reply>();

// Layers of your own, and lists of layers, do not hide the type.
declare const mine: Layer;
expectTypeOf(createAgent({ model, use: [mine, output(place)] })).toEqualTypeOf<
  Agent<{ city: string }>
>();
expectTypeOf(createAgent({ model, use: [[mine, output(place)], mine] })).toEqualTypeOf<
  Agent<{ city: string }>
>();
expectTypeOf(createAgent({ model, use: [mine] })).toEqualTypeOf<Agent<undefined>>();
expectTypeOf(typed.call('?', { use: [mine] })).resolves.toEqualTypeOf<Reply<{ city: string }>>();
expectTypeOf(plain.with(mine, output(sum))).toEqualTypeOf<Agent<{ sum: number }>>();
expectTypeOf(typed.with(mine)).toEqualTypeOf<Agent<{ city: string }>>();
expectTypeOf(sessions(plain).open('s').with(output(sum)).call('?')).resolves.toEqualTypeOf<
  Reply<{ sum: number }>
>();
declare const durable: Journal;
expectTypeOf(durable.resume<{ city: string }>(typed, 'c')).resolves.toEqualTypeOf<
  Reply<{ city: string }>
>();

// @ts-expect-error what an answer must be is a layer
createAgent({ model, output: sum });

// @ts-expect-error a schema is no text
output('text');

expectTypeOf(partialOutput$<{ city: string; tags: string[] }>(plain.events$)).toEqualTypeOf<
  Observable<{ readonly city?: string; readonly tags?: readonly string[] }>
>();
expectTypeOf<PartialOf<number>>().toEqualTypeOf<number>();
