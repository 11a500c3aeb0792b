import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  createDemand,
  type Demand,
  type MillraceError,
  type ModelContext,
  openDemand,
} from '@millrace/core';
import { finish, lentContext, marbles, text } from '@millrace/core/testing';
import { catchError, type Observable, Subscription, tap, throwError } from 'rxjs';
import { exchange$ } from './exchange-stream.js';
import { doneEvent, event, exchangeWith, finishEvent, usageEvent } from './wire.test-support.js';

const values = {
  t: text('t'),
  f: finish(),
  p: finish('pause'),
  u: { type: 'usage', usage: { outputTokens: 1 } },
} as const;

/** What the server sends for each letter. */
const sent: Readonly<Record<string, string>> = {
  t: event(values.t),
  f: finishEvent,
  p: event(values.p),
  u: usageEvent,
  d: doneEvent,
};

interface Handler {
  onConnect(abort: () => void): void;
  onHeaders(status: number, headers: readonly string[], resume: () => void): boolean;
  onData(bytes: Uint8Array): boolean;
  onComplete(): void;
  onError(error: Error): void;
}

const key = Symbol.for('undici.globalDispatcher.1');

/** The connections of `fetch`, replaced by one whose responses come in virtual time. */
const serve = (letters: Observable<string>): void => {
  const dispatch = (_: object, handler: Handler): boolean => {
    const response = new Subscription();
    handler.onConnect(() => response.unsubscribe());
    handler.onHeaders(200, [], () => undefined);
    response.add(
      letters.subscribe({
        next: (letter) => handler.onData(new TextEncoder().encode(sent[letter])),
        error: (error: Error) => handler.onError(error),
        complete: () => handler.onComplete(),
      }),
    );
    return true;
  };
  Reflect.set(globalThis, key, { dispatch });
};

const answer$ = (context: Pick<ModelContext, 'demand' | 'scheduler'>) => {
  const exchange = exchangeWith(() => Promise.reject(new Error('unused')));
  return exchange$({ ...exchange, fetch: undefined }, lentContext(context)).pipe(
    // The marbles below show its code.
    catchError(({ code }: MillraceError) => throwError(() => code)),
  );
};

let before: unknown;
beforeEach(() => {
  before = Reflect.get(globalThis, key);
});
afterEach(() => {
  Reflect.set(globalThis, key, before);
});

describe('the end of an answer', () => {
  it.each<[string, string, string, string]>([
    ['comes with that of the response', 't-f-u-|', '^-----!', 't-f-u-|'],
    ['has no content after the finish', 't-f-t-f-u-|', '^---------!', 't-f-----u-|'],
    ['may follow a pause', 't-p-|', '^---!', 't-p-|'],
    ['has no error after the finish', 't-f-#', '^---!', 't-f-|'],
    ['comes 2 s after the finish', 't-f-u', '^- 2000ms !', 't-f-u 1997ms |'],
    ['is not delayed by another finish', 'f 1s f 1s f', '^ 1999ms !', 'f 1999ms |'],
    ['comes 50 ms after the server was done', 't-f-d', '^--- 50ms !', 't-f- 50ms |'],
    ['is not delayed by another [DONE]', 'f-d-d', '^- 50ms !', 'f- 50ms |'],
    ['waits for usage after a finish that is late', 'd-f-u', '^- 2000ms !', '--f-u 1997ms |'],
  ])('X5, I18: %s', (_, source, subscription, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const letters = cold(source);
      serve(letters);
      expectObservable(answer$({ demand: openDemand, scheduler })).toBe(expected, values);
      expectSubscriptions(letters.subscriptions).toBe(subscription);
    });
  });

  it('X1: is an error without a finish', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      serve(cold('t-u-|'));
      expectObservable(answer$({ demand: openDemand, scheduler })).toBe(
        't-u-#',
        values,
        'invalidResponse',
      );
    });
  });

  it('I16: is not given up while demand is closed', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const demand = createDemand(4);
      scheduler.schedule(() => demand.backlog(4), 10);
      scheduler.schedule(() => demand.backlog(0), 10_000);
      serve(cold('f'));
      expectObservable(answer$({ demand, scheduler })).toBe('f 11999ms |', values);
    });
  });

  it('I18: has no timer before the finish, and leaves none behind', () => {
    for (const [source, unsubscription] of [
      ['f--|', undefined],
      ['f-d-|', undefined],
      ['f---', '^--!'],
      ['t---', '^--!'],
    ] as const) {
      marbles(({ cold, expectObservable, scheduler }) => {
        serve(cold(source));
        const expected = source.replace('d', '-');
        expectObservable(answer$({ demand: openDemand, scheduler }), unsubscription).toBe(
          expected,
          values,
        );
        scheduler.schedule(() => {
          expect(scheduler.actions).toHaveLength(0);
        }, 10);
      });
    }
  });
});

describe('demand', () => {
  it('I16: sends no request while it is closed, and observes it only then', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const open$ = cold('c--o', { c: false, o: true });
      let isOpen = false;
      const demand: Demand = {
        get isOpen() {
          return isOpen;
        },
        open$,
      };
      scheduler.schedule(() => (isOpen = true), 3);
      const letters = cold('t-f|');
      serve(letters);
      expectObservable(answer$({ demand, scheduler })).toBe('---t-f|', values);
      expectSubscriptions(letters.subscriptions).toBe('---^--!');
      expectSubscriptions(open$.subscriptions).toBe('^--!');
    });
  });

  it('I16: may close again with each chunk', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      const demand = createDemand(1);
      serve(cold('(tttt)-t-(tf|)'));
      const slow$ = answer$({ demand, scheduler }).pipe(
        tap(() => {
          demand.backlog(1);
          scheduler.schedule(() => demand.backlog(0), 10);
        }),
      );
      expectObservable(slow$).toBe(`${'t 9ms '.repeat(6)}(f|)`, values);
    });
  });

  it('I16: an error of it is an error of the answer', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      serve(cold('t-f|'));
      const demand: Demand = { isOpen: false, open$: cold('--#') };
      expectObservable(answer$({ demand, scheduler })).toBe('--#', values, 'unknown');
    });
  });
});
