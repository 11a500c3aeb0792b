import { from, isObservable, map, type Observable, type ObservableInput } from 'rxjs';
import { contained, thenMap } from '../contained.js';
import type { Demand } from '../demand.js';
import { pulls } from '../from-pull.js';
import { readEmissions, type ToolEmission, toOutput } from '../tool-output.js';

/** Reads whatever the code of a tool returned: a value, a Promise, a generator, an AsyncIterable or an Observable. */
export const emissions = (
  returned: unknown,
  demand: Demand,
): ToolEmission | Observable<ToolEmission> => {
  if (isObservableLike(returned)) {
    const value$ = from(returned).pipe(contained());
    return readEmissions(value$.pipe(map((value) => ({ done: false, value }))));
  }
  if (isAsyncIterable(returned)) return readEmissions(pulls(() => returned, demand));
  if (isGenerator(returned)) return readEmissions(pulls(() => asAsync(returned), demand));
  if (isPromiseLike(returned)) {
    return from(returned).pipe(thenMap((settled) => emissions(settled, demand)));
  }
  return { type: 'output', output: toOutput(returned) };
};

const has = (value: unknown, key: PropertyKey): boolean =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, key) === 'function';

/** An Observable of another copy of RxJS, or of another library, is told by the symbol that they share. */
const isObservableLike = (value: unknown): value is ObservableInput<unknown> =>
  isObservable(value) || has(value, observableSymbol);

const observableSymbol: PropertyKey =
  'observable' in Symbol && typeof Symbol.observable === 'symbol'
    ? Symbol.observable
    : '@@observable';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown, unknown> =>
  has(value, Symbol.asyncIterator);

const isGenerator = (value: unknown): value is Generator<unknown, unknown> =>
  has(value, Symbol.iterator) && has(value, 'next');

const asAsync = (generator: Generator<unknown, unknown>): AsyncIterable<unknown, unknown> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => Promise.resolve(generator.next()),
    return: () => Promise.resolve(generator.return(undefined)),
  }),
});

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> => has(value, 'then');
