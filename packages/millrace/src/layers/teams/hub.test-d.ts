import { expectTypeOf } from 'expect-type';
import { map, of, type OperatorFunction } from 'rxjs';
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
import { asAgent, hub } from './index.js';
import { sessions } from '../sessions/index.js';

declare const model: Model;

const plain = createAgent({ name: 'plain', model });
const city = createAgent({ name: 'city', model, use: [output(z.object({ city: z.string() }))] });

type Plain = Reply<undefined>;
type City = Reply<{ city: string }>;

// The replies of whoever takes part.
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
