import { expectTypeOf } from 'expect-type';
import { map, of, type OperatorFunction } from 'rxjs';
import { z } from 'zod';
import {
  type Agent,
  createAgent,
  type Input,
  type Model,
  output,
  parallel,
  type Reply,
  sequential,
  textOf,
} from '../../index.js';
import { sessions } from '../sessions/index.js';
import { aggregate, asAgent, debate, hub, routeBy } from './index.js';

declare const model: Model;

const plain = createAgent({ name: 'plain', model });
const city = createAgent({ name: 'city', model, use: [output(z.object({ city: z.string() }))] });
const sum = createAgent({ model, use: [output(z.object({ sum: z.number() }))] });
const judge = createAgent({
  name: 'judge',
  model,
  use: [output(z.object({ winner: z.string() }))],
});

type Plain = Reply<undefined>;
type City = Reply<{ city: string }>;
type Sum = Reply<{ sum: number }>;
type Verdict = Reply<{ winner: string }>;

// ---------------------------------------------------------------- aggregate

// The function knows what the step emits, each by its place, and what it gives comes out.
const both = aggregate(parallel(plain, city), (replies) => {
  expectTypeOf(replies).toEqualTypeOf<readonly [Plain, City]>();
  return replies[1];
});
expectTypeOf(both).toEqualTypeOf<OperatorFunction<Input, City>>();
expectTypeOf(asAgent(both)).toEqualTypeOf<Agent<{ city: string }>>();
expectTypeOf(asAgent(sequential(plain, both))).toEqualTypeOf<Agent<{ city: string }>>();
const shouted = aggregate(plain, (reply) => {
  expectTypeOf(reply).toEqualTypeOf<Plain>();
  return textOf(reply).toUpperCase();
});
expectTypeOf(shouted).toEqualTypeOf<OperatorFunction<Input, string>>();

// @ts-expect-error a number is no answer
aggregate(parallel(plain, city), (replies) => replies.length);
// @ts-expect-error a text is no step
aggregate('plain', () => 'x');

// In a `sequential`, an operator of RxJS has to take any input: it does not know what comes.
sequential(
  parallel(plain, city),
  // @ts-expect-error it wants replies only
  map((replies: readonly [Plain, City]) => replies[1]),
);

// ---------------------------------------------------------------- debate

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

// ---------------------------------------------------------------- hub

// The replies of those who take part.
expectTypeOf(hub({ agents: [plain, city], rounds: 2 })).toEqualTypeOf<
  OperatorFunction<Input, readonly (Plain | City)[]>
>();
expectTypeOf(hub({ agents: [city] })).toEqualTypeOf<OperatorFunction<Input, readonly City[]>>();

// Who decides knows what they say, and may choose at once or later.
hub({
  agents: [plain, city],
  next: (transcript, input, options) => {
    expectTypeOf(transcript).toEqualTypeOf<readonly (Plain | City)[]>();
    expectTypeOf(input).toEqualTypeOf<Input>();
    return plain.call$(input, options).pipe(map(({ id }) => (id === '' ? city : undefined)));
  },
  maxTurns: 3,
});
hub({ agents: [plain, city], next: ({ length }) => [plain, city][length] });
hub({ agents: [plain], next: () => Promise.resolve(plain) });
declare const any: Agent;
hub({ agents: [plain], next: () => any });

// It is a step.
expectTypeOf(sequential(hub({ agents: [plain, city] }), city)).toEqualTypeOf<
  OperatorFunction<Input, City>
>();
expectTypeOf(asAgent(hub({ agents: [plain] }))).toEqualTypeOf<Agent<undefined>>();
hub({ agents: [asAgent(sessions(plain).open('s'), { name: 'remembers' }), city] });

// @ts-expect-error at least one agent
hub({ agents: [] });
// @ts-expect-error a session has no name
hub({ agents: [sessions(plain).open('s')] });
// @ts-expect-error rounds go without next
hub({ agents: [plain], rounds: 2, next: () => plain });
// @ts-expect-error maxTurns go with next
hub({ agents: [plain], maxTurns: 2 });
// @ts-expect-error a text is no agent
hub({ agents: [plain], next: () => of('plain') });

// ---------------------------------------------------------------- routeBy

const routes = {
  where: { step: city, when: 'Somebody asks for a place.' },
  howMany: { step: sequential(plain, sum), when: 'Somebody asks for a number.' },
};

// Whatever may be chosen.
expectTypeOf(routeBy(model, routes)).toEqualTypeOf<OperatorFunction<Input, City | Sum>>();
expectTypeOf(routeBy(model, routes, { otherwise: plain })).toEqualTypeOf<
  OperatorFunction<Input, City | Sum | Plain>
>();
expectTypeOf(asAgent(routeBy(model, { where: routes.where }))).toEqualTypeOf<
  Agent<{ city: string }>
>();

// @ts-expect-error a route says when it is the one
routeBy(model, { where: { step: city } });
// @ts-expect-error a text is no step
routeBy(model, { where: { step: 'city', when: 'always' } });
