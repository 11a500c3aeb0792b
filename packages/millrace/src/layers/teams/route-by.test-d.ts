import { expectTypeOf } from 'expect-type';
import type { OperatorFunction } from 'rxjs';
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
import { asAgent, routeBy } from './index.js';

declare const model: Model;

const plain = createAgent({ model });
const city = createAgent({ model, use: [output(z.object({ city: z.string() }))] });
const sum = createAgent({ model, use: [output(z.object({ sum: z.number() }))] });

type Plain = Reply<undefined>;
type City = Reply<{ city: string }>;
type Sum = Reply<{ sum: number }>;

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
