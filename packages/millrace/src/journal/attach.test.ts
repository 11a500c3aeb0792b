import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concatMap,
  from,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  Subject,
  toArray,
} from 'rxjs';
import { createDemand } from '../flow/demand.js';
import { toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../index.js';
import { marbles } from '../testing/index.js';
import {
  attach$,
  calls$,
  type CallStoreDriver,
  type NewRecord,
  type StoredRecord,
} from './index.js';
import { all, begun, event, seqs, step, storeWith, write } from './stored-calls.test-support.js';

const reply = { reason: 'answer' };
const last = (seq: number): NewRecord => event(seq, { type: 'postCall', reply });
const failed = (seq: number): NewRecord =>
  event(seq, { type: 'error', error: { code: 'connection', message: 'No.', retryable: true } });

/** Listens, and tells what has come until now. */
const listen = (events$: Observable<AgentEvent>) => {
  const heard: (number | string)[] = [];
  const subscription = events$.subscribe({
    next: ({ seq }) => heard.push(seq),
    error: (error: unknown) => heard.push(toMillraceError(error).code),
    complete: () => heard.push('end'),
  });
  return { heard, leave: () => subscription.unsubscribe() };
};

/** A driver in virtual time: records come when a marble says so, portion by portion, and each read takes a while. */
const slowDriver = (
  records$: Observable<readonly NewRecord[]>,
  readMs: (value: readonly StoredRecord[]) => Observable<readonly StoredRecord[]>,
): CallStoreDriver => {
  const records: StoredRecord[] = [];
  const changed$ = new Subject<void>();
  records$.subscribe((more) => {
    for (const record of more) records.push({ ...record, position: records.length + 1 });
    changed$.next();
  });
  return {
    claim$: () => NEVER,
    list$: () => NEVER,
    remove$: () => NEVER,
    removeAll$: () => NEVER,
    changes$: () => changed$,
    read$: (_callId, { kind, after = 0, afterSeq = -1 } = {}) =>
      of(undefined).pipe(
        map(() =>
          records.filter(
            (it) =>
              (kind === undefined || it.kind === kind) && it.position > after && it.seq > afterSeq,
          ),
        ),
        concatMap(readMs),
      ),
  };
};

const isFrozenThrough = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Object.isFrozen(value) && Object.values(value).every(isFrozenThrough));

const atOnce = (records: readonly StoredRecord[]) => of(records);

describe('attach$', () => {
  it('S7: emits what is there, then what comes, and completes after the last', async () => {
    const store = await storeWith({ c: [step('c/call', {}), event(1), event(2)] });
    const early = listen(attach$(store, 'c'));
    const late = listen(attach$(store, 'c', { afterSeq: 1 }));
    await write(store.driver, 'c', [event(3, { callId: 'c/t', type: 'postCall' }), step('c/1', 1)]);
    await write(store.driver, 'c', [event(4), last(5)]);
    expect(early.heard).toEqual([1, 2, 3, 4, 5, 'end']);
    expect(late.heard).toEqual([2, 3, 4, 5, 'end']);
    expect(listen(attach$(store, 'c', { afterSeq: 4 })).heard).toEqual([5, 'end']);
    expect(listen(attach$(store, 'c', { afterSeq: 5 })).heard).toEqual(['end']);
  });

  it('S7: a call with a log of its own ends in it, also if the call above has none', async () => {
    const below = { rootId: 'above', parentId: 'above' };
    const store = await storeWith({
      c: [begun('c'), event(1, below), event(2, { ...below, type: 'postCall', reply })],
    });
    expect(listen(attach$(store, 'c')).heard).toEqual([1, 2, 'end']);
    expect(listen(attach$(store, 'c', { afterSeq: 2 })).heard).toEqual(['end']);
    const [call] = await all(calls$(store));
    expect(call?.status).toBe('ended');
  });

  it('X19: gives frozen events', async () => {
    const store = await storeWith({ c: [event(1, { message: { deep: [] } }), last(2)] });
    const seen: AgentEvent[] = [];
    attach$(store, 'c').subscribe((it) => seen.push(it));
    expect(seen).toHaveLength(2);
    expect(seen.every((it) => Object.isFrozen(it))).toBe(true);
    expect(seen[0]).toMatchObject({ message: { deep: [] } });
    expect(isFrozenThrough(seen[0])).toBe(true);
  });

  it('S7: an error is the end, unless the call was resumed; who knows of it waits for that', async () => {
    const store = await storeWith({ c: [event(1), failed(2)] });
    expect(listen(attach$(store, 'c')).heard).toEqual([1, 2, 'end']);
    const waiting = listen(attach$(store, 'c', { afterSeq: 2 }));
    expect(waiting.heard).toEqual([]);
    await write(store.driver, 'c', [event(3, { type: 'stepReplayed' }), last(4)]);
    expect(waiting.heard).toEqual([3, 4, 'end']);
    expect(listen(attach$(store, 'c')).heard).toEqual([1, 2, 3, 4, 'end']);
  });

  it('S7: waits as long as its option says for a call that has not begun, and no longer', async () => {
    const store = await storeWith({});
    const code = catchError((error: unknown) => of(toMillraceError(error).code));
    marbles(({ scheduler, expectObservable }) => {
      const none$ = attach$(store, 'none', { waitMs: 50, scheduler });
      expectObservable(none$.pipe(code)).toBe('50ms (a|)', { a: 'invalidResume' });
      const atOnce$ = attach$(store, 'none', { scheduler });
      expectObservable(atOnce$.pipe(code)).toBe('(a|)', { a: 'invalidResume' });
    });
    marbles(({ scheduler, hot, expectObservable }) => {
      const records$ = hot('--a--b', { a: [step('c/call', {})], b: [event(1), last(2)] });
      const driver = slowDriver(records$, atOnce);
      const seen$ = attach$({ driver }, 'c', { waitMs: 3, scheduler }).pipe(map(({ seq }) => seq));
      expectObservable(seen$).toBe('-----(ab|)', { a: 1, b: 2 });
    });
  });

  it('S7: loses nothing that comes while it reads, and reads once more for all of it', () => {
    marbles(({ scheduler, hot, cold, flush }) => {
      const written$ = hot('a--bc---def', {
        a: [event(1)],
        b: [event(2)],
        c: [event(3)],
        d: [event(4)],
        e: [event(5)],
        f: [last(6)],
      });
      const readAt: number[] = [];
      const heard: (readonly [number, number | 'end'])[] = [];
      const driver = slowDriver(written$, (read) => {
        readAt.push(scheduler.now());
        return cold('---(a|)', { a: read });
      });
      scheduler.schedule(() => {
        attach$({ driver }, 'c', { scheduler, waitMs: 9 }).subscribe({
          next: ({ seq }) => heard.push([scheduler.now(), seq]),
          complete: () => heard.push([scheduler.now(), 'end']),
        });
      }, 1);
      flush();
      // One read says that the call is there.
      expect(readAt).toEqual([1, 4, 8, 11]);
      expect(heard).toEqual([
        [7, 1],
        [7, 2],
        [7, 3],
        [11, 4],
        [14, 5],
        [14, 6],
        [14, 'end'],
      ]);
    });
  });

  it('I16: reads no more than is wanted', async () => {
    const store = await storeWith({ c: Array.from({ length: 9 }, (_, at) => event(at + 1)) });
    const demand = createDemand(1);
    const portions: number[] = [];
    const driver: CallStoreDriver = {
      ...store.driver,
      // Three at a time.
      read$: (callId, range) =>
        store.driver.read$(callId, range).pipe(
          map((records) => records.slice(0, 3)),
          map((records) => {
            portions.push(records.length);
            return records;
          }),
        ),
    };
    const heard: number[] = [];
    const subscription = attach$({ driver }, 'c', { demand }).subscribe(({ seq }) => {
      heard.push(seq);
      if (seq === 2 || seq === 6) demand.backlog(1);
    });
    const known = portions.length;
    expect(heard).toEqual([1, 2]);
    demand.backlog(0);
    expect([heard, portions.length - known]).toEqual([[1, 2, 3, 4, 5, 6], 1]);
    demand.backlog(0);
    expect(heard).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await write(store.driver, 'c', [event(10)]);
    expect(heard.at(-1)).toBe(10);
    subscription.unsubscribe();
  });

  it('S7: an event that cannot be read is a typed error, after those before it', async () => {
    const broken: NewRecord = { kind: 'event', name: 'warning', seq: 2, text: '{"type":' };
    const foreign: NewRecord = { ...broken, text: '{"type":"warning"}' };
    for (const record of [broken, foreign]) {
      const store = await storeWith({ c: [event(1), record, last(3)] });
      expect(listen(attach$(store, 'c')).heard).toEqual([1, 'invalidState']);
      expect(listen(attach$(store, 'c', { afterSeq: 2 })).heard).toEqual([3, 'end']);
    }
  });

  it('X15: takes no prototype from a record', async () => {
    const text =
      '{"__proto__":{"polluted":1},"type":"warning","rootId":"c","callId":"c","agent":[],"iteration":0,"seq":1,"at":0}';
    const store = await storeWith({
      c: [{ kind: 'event', name: 'warning', seq: 1, text }, last(2)],
    });
    const seen: AgentEvent[] = [];
    attach$(store, 'c').subscribe((it) => seen.push(it));
    expect(seqs(seen)).toEqual([1, 2]);
    expect('polluted' in Object(seen[0])).toBe(false);
  });

  it('S7: a call that is there is found, however long the store takes to read it', async () => {
    const { driver } = await storeWith({ c: [event(1), last(2)] });
    const slow: CallStoreDriver = {
      ...driver,
      read$: (...given) => from(Promise.resolve()).pipe(mergeMap(() => driver.read$(...given))),
    };
    const events = await lastValueFrom(attach$({ driver: slow }, 'c').pipe(toArray()));
    expect(events.at(-1)?.type).toBe('postCall');
  });

  it('S7: a follower that has seen more than there is of an ended call gets its end', async () => {
    const store = await storeWith({ c: [event(1), last(2)] });
    expect(await lastValueFrom(attach$(store, 'c', { afterSeq: 99 }).pipe(toArray()))).toEqual([]);
  });

  it('S7: a store that is closed before the end is an error, and no end', async () => {
    const { driver } = await storeWith({ c: [event(1)], ended: [event(1), last(2)] });
    const closed$ = new Subject<never>();
    const open: CallStoreDriver = { ...driver, changes$: () => closed$ };
    const following = listen(attach$({ driver: open }, 'c'));
    const waiting = listen(attach$({ driver: open }, 'none', { waitMs: 99_999 }));
    closed$.complete();
    expect([following.heard, waiting.heard]).toEqual([[1, 'store'], ['store']]);
  });

  it('X18: leaves nothing', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const changes$ = hot('---a---');
      const driver = { ...slowDriver(of([event(1)]), atOnce), changes$: () => changes$ };
      expectObservable(attach$({ driver }, 'c', { afterSeq: 1 }), '^----!').toBe('');
      expectSubscriptions(changes$.subscriptions).toBe(['^----!']);
    });
  });

  it('refuses what it cannot be', async () => {
    const store = await storeWith({});
    expect(() => attach$(store, '')).toThrow('id of a call');
    expect(() => attach$(store, 'c', { afterSeq: -1 })).toThrow("'afterSeq'");
    expect(() => attach$({} as typeof store, 'c')).toThrow('createCallStore(driver)');
  });
});
