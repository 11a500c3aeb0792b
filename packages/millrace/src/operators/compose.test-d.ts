import { expectTypeOf } from 'expect-type';
import { from, map, type Observable, of, type OperatorFunction } from 'rxjs';
import { z } from 'zod';
import { createAgent, type Input, type Model, output, type Reply } from '../index.js';
import { parallel, race, route, sequential } from './compose.js';
import { sessions } from '../layers/sessions/index.js';

declare const model: Model;
declare const question$: Observable<string>;

const plain = createAgent({ model });
const city = createAgent({ model, use: [output(z.object({ city: z.string() }))] });
const sum = createAgent({ model, use: [output(z.object({ sum: z.number() }))] });

type Plain = Reply<undefined>;
type City = Reply<{ city: string }>;
type Sum = Reply<{ sum: number }>;

// The last step says what comes out.
expectTypeOf(sequential(plain, city)).toEqualTypeOf<OperatorFunction<Input, City>>();
expectTypeOf(sequential(sessions(city).open('s'))).toEqualTypeOf<OperatorFunction<Input, City>>();
expectTypeOf(
  sequential(plain, plain.asOperator({ use: [output(z.object({ own: z.string() }))] })),
).toEqualTypeOf<OperatorFunction<Input, Reply<{ own: string }>>>();
expectTypeOf(question$.pipe(sequential(plain, sum))).toEqualTypeOf<Observable<Sum>>();

// A tuple, in the order of the steps.
expectTypeOf(parallel(plain, city, sum)).toEqualTypeOf<
  OperatorFunction<Input, readonly [Plain, City, Sum]>
>();
expectTypeOf(question$.pipe(parallel(city, sum))).toEqualTypeOf<Observable<readonly [City, Sum]>>();

// Any of them.
expectTypeOf(race(city, sum)).toEqualTypeOf<OperatorFunction<Input, City | Sum>>();

// Whatever may be chosen, at once or later.
expectTypeOf(route(() => city)).toEqualTypeOf<OperatorFunction<Input, City>>();
const sums = sum.asOperator();
const cities = city.asOperator();
expectTypeOf(route((input) => (input === '' ? cities : sums))).toEqualTypeOf<
  OperatorFunction<Input, City | Sum>
>();
expectTypeOf(route((input) => (input === '' ? city : sum))).toEqualTypeOf<
  OperatorFunction<Input, City | Sum>
>();
expectTypeOf(route(() => (Math.random() > 1 ? city : undefined))).toEqualTypeOf<
  OperatorFunction<Input, City>
>();
expectTypeOf(route(() => Promise.resolve(sum))).toEqualTypeOf<OperatorFunction<Input, Sum>>();
expectTypeOf(route(() => of(city, undefined))).toEqualTypeOf<OperatorFunction<Input, City>>();
expectTypeOf(
  route((input) => plain.call$(input).pipe(map((reply) => (reply.id === '' ? cities : sums)))),
).toEqualTypeOf<OperatorFunction<Input, City | Sum>>();

// They nest: a reply is an input, and so is a list of replies.
expectTypeOf(sequential(parallel(city, sum), plain)).toEqualTypeOf<
  OperatorFunction<Input, Plain>
>();
expectTypeOf(parallel(sequential(plain, city), race(city, sum))).toEqualTypeOf<
  OperatorFunction<Input, readonly [City, City | Sum]>
>();
expectTypeOf(route(() => sequential(plain, city))).toEqualTypeOf<OperatorFunction<Input, City>>();
expectTypeOf(
  sequential(
    plain,
    map(() => 'Once more.'),
    sum,
  ),
).toEqualTypeOf<OperatorFunction<Input, Sum>>();
const many = [city, city] as const;
expectTypeOf(parallel(...many)).toEqualTypeOf<OperatorFunction<Input, readonly [City, City]>>();

// @ts-expect-error at least one step
sequential();
// @ts-expect-error at least one step
parallel();
// @ts-expect-error at least one step
race();
// @ts-expect-error a text is no step
sequential(plain, 'writer');
const numbers = map(() => 5);
// @ts-expect-error a number is no input for the next step
sequential(numbers, plain);
const ofNumbers = map((n: number) => String(n));
// @ts-expect-error a step takes any input, not only numbers
sequential(plain, ofNumbers);
// @ts-expect-error a list of lists is no input
sequential(parallel(parallel(city, sum), city), plain);
// @ts-expect-error a text is no step
route(() => 'writer');
// @ts-expect-error a stream of numbers tells no step
route(() => from([1, 2]));
// @ts-expect-error the input is not a number
void of(5).pipe(sequential(plain));
