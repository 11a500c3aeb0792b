import { describe, expect, it } from '@jest/globals';
import { catchError, filter, map, mergeMap, type Observable, of, tap } from 'rxjs';
import { toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../index.js';
import { marbles } from '../testing/index.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  type NewRecord,
  replay$,
} from './index.js';
import { all, event, step, storeWith, write } from './stored-calls.test-support.js';

/** Events that came at these times. */
const cameAt = (...times: readonly number[]): readonly NewRecord[] =>
  times.map((at, index) => event(index + 1, { at }));

const shown = (events$: Observable<AgentEvent>): Observable<unknown> =>
  events$.pipe(
    map(({ seq }) => seq),
    catchError((error: unknown) => of(toMillraceError(error).code)),
  );

describe('replay$', () => {
  it('S7: plays events with their original pauses, at the given speed', async () => {
    const store = await storeWith({ c: [step('c/call', {}), ...cameAt(100, 103, 103, 113)] });
    marbles(({ scheduler, expectObservable }) => {
      const values = { a: 1, b: 2, c: 3, d: 4 };
      const at = (speed?: number) =>
        shown(replay$(store, 'c', { scheduler, ...(speed !== undefined && { speed }) }));
      expectObservable(at()).toBe('a--(bc)------(d|)', values);
      expectObservable(at(0.5)).toBe('a-----(bc)- 15ms (d|)', values);
      expectObservable(at(Infinity)).toBe('(abcd|)', values);
    });
  });

  it('S7: a clock that went backwards is no pause, and a long one may be cut', async () => {
    const store = await storeWith({ c: cameAt(50, 20, 26, 90_000_026) });
    marbles(({ scheduler, expectObservable }) => {
      const values = { a: 1, b: 2, c: 3, d: 4 };
      const played$ = replay$(store, 'c', { scheduler, maxGapMs: 10 });
      expectObservable(shown(played$)).toBe('(ab)--c---------(d|)', values);
    });
  });

  it('S7: plays some of them only, with the pauses between those', async () => {
    const store = await storeWith({ c: cameAt(0, 2, 4, 6) });
    marbles(({ scheduler, expectObservable }) => {
      const events = ({ seq }: AgentEvent) => seq % 2 === 0;
      const played$ = shown(replay$(store, 'c', { scheduler, events }));
      expectObservable(played$).toBe('a---(b|)', { a: 2, b: 4 });
    });
  });

  it('L8, S7: plays a great many at the same time', async () => {
    const times = Array.from({ length: 20_000 }, (_, at) => (at === 0 ? 0 : 1));
    const store = await storeWith({ c: cameAt(...times) });
    marbles(({ scheduler, flush }) => {
      let heard = 0;
      replay$(store, 'c', { scheduler }).subscribe({
        next: () => {
          heard += 1;
        },
        error: (error: unknown) => {
          throw error;
        },
      });
      flush();
      expect(heard).toBe(20_000);
    });
  });

  it('S7: reads no further than it plays, and nothing that comes meanwhile', async () => {
    const { driver } = await storeWith({ c: cameAt(0, 1, 2, 3, 4, 5, 6) });
    const readFrom: number[] = [];
    const portions: CallStoreDriver = {
      ...driver,
      // Three at a time.
      read$: (callId, range) =>
        driver.read$(callId, range).pipe(
          mergeMap((records) => [records.slice(0, 3), records.slice(3, 6), records.slice(6)]),
          filter(({ length }) => length > 0),
          tap((records) => readFrom.push(records[0]?.position ?? 0)),
        ),
    };
    marbles(({ scheduler, expectObservable, flush }) => {
      const at = (wanted: number) => () => expect(readFrom.at(-1)).toBe(wanted);
      expectObservable(shown(replay$({ driver: portions }, 'c', { scheduler }))).toBe(
        'abcdef(g|)',
        { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 },
      );
      scheduler.schedule(at(1), 1);
      scheduler.schedule(at(4), 4);
      scheduler.schedule(() => void write(driver, 'c', [event(8, { at: 7 })]), 5);
      flush();
    });
    expect(readFrom.at(-1)).toBe(7);
  });

  it('S7: reports what it cannot read, after what it can', async () => {
    const broken: NewRecord = { kind: 'event', name: 'warning', seq: 2, text: '[]' };
    const store = await storeWith({ c: [event(1), broken, event(3)] });
    expect(await all(shown(replay$(store, 'c')))).toEqual([1, 'invalidState']);
    const empty = createCallStore(inProcessCalls());
    expect(await all(shown(replay$(empty, 'c')))).toEqual(['invalidResume']);
    expect(() => replay$(store, 'c', { speed: 0 })).toThrow("'speed'");
    expect(() => replay$(store, 'c', { maxGapMs: -1 })).toThrow("'maxGapMs'");
  });
});
