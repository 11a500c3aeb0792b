import { expectTypeOf } from 'expect-type';
import { of, type OperatorFunction } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  createAgent,
  type Input,
  type Model,
  output,
  type Reply,
  sequential,
} from '../../index.js';
import { asAgent, debate } from './index.js';
import { sessions } from '../sessions/index.js';

declare const model: Model;

const plain = createAgent({ name: 'plain', model });
const city = createAgent({ name: 'city', model, use: [output(z.object({ city: z.string() }))] });
const judge = createAgent({
  name: 'judge',
  model,
  use: [output(z.object({ winner: z.string() }))],
});

type Verdict = Reply<{ winner: string }>;

// The judge says what comes out.
expectTypeOf(debate({ agents: [plain, city], judge })).toEqualTypeOf<
  OperatorFunction<Input, Verdict>
>();
expectTypeOf(debate({ agents: [plain, city], judge: sessions(judge).open('s') })).toEqualTypeOf<
  OperatorFunction<Input, Verdict>
>();
expectTypeOf(debate({ agents: [plain, city], judge: sequential(plain, judge) })).toEqualTypeOf<
  OperatorFunction<Input, Verdict>
>();
expectTypeOf(asAgent(debate({ agents: [plain, city], judge }))).toEqualTypeOf<
  Agent<{ winner: string }>
>();

debate({
  agents: [plain, city],
  judge,
  until: (transcript) => {
    expectTypeOf(transcript).toEqualTypeOf<
      readonly (Reply<undefined> | Reply<{ city: string }>)[]
    >();
    return of(transcript.length > 4);
  },
});

// @ts-expect-error two sides at least
debate({ agents: [plain], judge });
// @ts-expect-error there is no debate without a judge
debate({ agents: [plain, city] });
// @ts-expect-error a text is no answer to whether it is enough
debate({ agents: [plain, city], judge, until: () => 'yes' });
