import { expectTypeOf } from 'expect-type';
import { map, type OperatorFunction } from 'rxjs';
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
import { aggregate, asAgent } from './index.js';

declare const model: Model;

const plain = createAgent({ model });
const city = createAgent({ model, use: [output(z.object({ city: z.string() }))] });

type Plain = Reply<undefined>;
type City = Reply<{ city: string }>;

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
