import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  createDemand,
  type Demand,
  type MillraceError,
  type ModelContext,
  openDemand,
} from 'millrace';
import { finish, lentContext, marbles, text } from 'millrace/testing';
import {
  asyncScheduler,
  catchError,
  from,
  lastValueFrom,
  type Observable,
  Subscription,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { Endings, Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import { at } from './paths.js';
import { doneEvent, event, exchangeWith, finishEvent, usageEvent } from './wire.test-support.js';

const values = {
  t: text('t'),
  c: { type: 'toolCall', name: 'c' },
  f: finish(),
  l: finish('length'),
  p: finish('pause'),
  u: { type: 'usage', usage: { outputTokens: 1 } },
} as const;

/** What the server sends for each letter. */
const sent: Readonly<Record<string, string>> = {
  t: event(values.t),
  c: event(values.c),
  l: event(values.l),
  /** A call with its own finish. */
  k: event({ chunks: [values.c, values.f] }),
  e: event({ error: { type: 'server_error' } }),
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

const answer$ = (
  context: Pick<ModelContext, 'demand' | 'scheduler' | 'timeouts'>,
  endings?: Endings,
) => {
  const exchange = exchangeWith(() => Promise.reject(new Error('unused')));
  const read: Exchange['read'] = ({ data }) => {
    const chunks = at(data, 'chunks');
    return Array.isArray(chunks) ? chunks : exchange.read({ data });
  };
  return exchange$({ ...exchange, read, fetch: undefined, endings }, lentContext(context)).pipe(
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
    ['comes with that of the response', 't-f-u-|', '^-----!', 't---u-(f|)'],
    ['may follow a pause', 't-p-|', '^---!', 't---(p|)'],
    ['has content after the finish', 't-f-t-u-|', '^-------!', 't---t-u-(f|)'],
    ['has a tool call after the finish', 't-f-c-|', '^-----!', 't---c-(f|)'],
    ['has the last finish', 't-f-t-l-|', '^-------!', 't---t---(l|)'],
    ['is no error if the connection is lost', 't-f-#', '^---!', 't---(f|)'],
    ['is an error if the vendor reports one', 't-f-e', '^--- 50ms !', 't--- 50ms #'],
    ['has the usage after an error', 't-e-u-|', '^-----!', 't---u-#'],
    ['has nothing else after an error', 't-e-t-f-u-e-u-|', '^-------------!', 't-------u---u-#'],
    ['comes 50 ms after an error, whatever follows', 't-e-t', '^- 50ms !', 't- 50ms #'],
    ['is the error of the vendor if the connection is lost', 't-e-u-#', '^-----!', 't---u-#'],
    ['has no error after [DONE]', 't-f-d-e', '^-----!', 't-----(f|)'],
    ['has no content after [DONE]', 't-f-d-t', '^--- 50ms !', 't--- 50ms (f|)'],
    ['comes 2 s after the finish', 't-f-u', '^- 2000ms !', 't---u 1997ms (f|)'],
    ['comes 2 s after the last content', 't-f 1s t', '^-- 3s !', 't-- 1s t 1999ms (f|)'],
    ['is not delayed by another finish', 'f 1s f 1s f', '^ 1999ms !', '- 1999ms (f|)'],
    ['is not delayed by usage', 'f 1s u 1s f', '^ 1999ms !', '- 1s u 998ms (f|)'],
    ['comes 10 s after a finish next to a call', 't-k', '^- 10s !', 't-c 9999ms (f|)'],
    ['waits for the next call', 'k 9s k 9s c-|', '^ 9s 9s 3ms !', 'c 9s c 9s c-(f|)'],
    ['comes 2 s after a finish of its own', 'k 1s f', '^ 3s !', 'c 3s (f|)'],
    ['comes 50 ms after the server was done', 't-f-d', '^--- 50ms !', 't--- 50ms (f|)'],
    ['is not delayed by another [DONE]', 'f-d-d', '^- 50ms !', '-- 50ms (f|)'],
    ['waits for usage after a finish that is late', 'd-f-u', '^- 2000ms !', '----u 1997ms (f|)'],
  ])('X5, I18: %s', (_, source, subscription, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const letters = cold(source);
      serve(letters);
      expectObservable(answer$({ demand: openDemand, scheduler })).toBe(expected, values, 'server');
      expectSubscriptions(letters.subscriptions).toBe(subscription);
    });
  });

  const afterwards = (first: string, then: string, expected: string) => {
    const endings = { staysOpen: false };
    for (const [source, end] of [
      [first, undefined],
      [then, expected],
    ] as const) {
      marbles(({ cold, expectObservable, scheduler }) => {
        serve(cold(source));
        const reply$ = answer$({ demand: openDemand, scheduler }, endings);
        if (end !== undefined) expectObservable(reply$).toBe(end, values);
        else reply$.subscribe();
      });
    }
  };

  it.each([
    ['0.2 s after the finish of a server that stayed open before', 'tf', 't-f', 't- 200ms (f|)'],
    ['2 s after a finish next to a call', 'tf', 'k', 'c 1999ms (f|)'],
    ['2 s after that of a server that ended before', 't-f-|', 't-f', 't- 2000ms (f|)'],
    ['2 s after that of a server that was done before', 't-f-d', 't-f', 't- 2000ms (f|)'],
    ['when the response ends', 'tf', 't-f-|', 't---(f|)'],
  ])('I18: comes %s', (_, first, then, expected) => {
    afterwards(first, then, expected);
  });

  it('I18: comes before the idle limit of the model, and is then no error', () => {
    marbles(({ cold, expectObservable, scheduler }) => {
      serve(cold('t 500ms f'));
      const chunk$ = answer$({ demand: openDemand, scheduler, timeouts: { chunkMs: 900 } });
      expectObservable(chunk$).toBe('t 898ms (f|)', values);
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
      expectObservable(answer$({ demand, scheduler })).toBe('- 11999ms (f|)', values);
    });
  });

  it('I18: has no timer before the finish, and leaves none', () => {
    for (const [source, unsubscription] of [
      ['f--|', undefined],
      ['f-d-|', undefined],
      ['f---', '^--!'],
      ['t---', '^--!'],
    ] as const) {
      marbles(({ cold, expectObservable, scheduler }) => {
        serve(cold(source));
        const held = source.replaceAll(/[df]/gu, '-');
        const expected = held.replace('|', '(f|)');
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

describe('what arrives together', () => {
  /** How often the time is read for so many pieces of one socket read, and the chunks. */
  const readsOf = async (pieces: number) => {
    let reads = 0;
    const now = (): number => (reads += 1);
    const scheduler = new Proxy(asyncScheduler, {
      get: (target, key): unknown => (key === 'now' ? now : Reflect.get(target, key)),
    });
    serve(from([...Array<string>(pieces).fill('t'), 'f']));
    const chunks = await lastValueFrom(answer$({ demand: openDemand, scheduler }).pipe(toArray()));
    return { reads, chunks: chunks.length };
  };

  it('is read in one go', async () => {
    const [few, many] = [await readsOf(1), await readsOf(200)];
    expect(many).toEqual({ reads: few.reads, chunks: few.chunks + 199 });
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
      expectObservable(answer$({ demand, scheduler })).toBe('---t--(f|)', values);
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

  it('I16: does not delay the usage and the error after an error of the vendor', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const demand = createDemand(4);
      const letters = cold('t-e-u-|');
      scheduler.schedule(() => demand.backlog(4), 3);
      serve(letters);
      expectObservable(answer$({ demand, scheduler })).toBe('t---u-#', values, 'server');
      expectSubscriptions(letters.subscriptions).toBe('^-----!');
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
