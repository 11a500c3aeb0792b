import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  defer,
  EMPTY,
  ignoreElements,
  mergeMap,
  NEVER,
  type Observable,
  repeat,
  takeUntil,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { createDemand } from '../flow/demand.js';
import { dyingAfter } from './dying-driver.test-support.js';
import { attach$, createCallStore, inProcessCalls } from './index.js';
import type { StoreOfCalls } from './call-store-driver.js';
import { payer } from './payer.test-support.js';
import { all, journalIn } from './stored-calls.test-support.js';

/** When a reader comes, how long it stays each time, and how many events it takes before it has to breathe. */
const reader = fc.record({
  at: fc.nat(60),
  stays: fc.option(fc.integer({ min: 1, max: 15 })),
  takes: fc.option(fc.integer({ min: 1, max: 5 })),
});

type Reader = typeof reader extends fc.Arbitrary<infer Value> ? Value : never;

/** Reads a call to its end, coming back behind what it has seen whenever it has left. */
const read = (
  store: StoreOfCalls,
  scheduler: VirtualTimeScheduler,
  { at, stays, takes }: Reader,
) => {
  const seen: number[] = [];
  let isOver = false;
  const visit$ = defer((): Observable<unknown> => {
    const demand = createDemand(1);
    const breathe$ = timer(1, scheduler).pipe(tap(() => demand.backlog(0)));
    const events$ = attach$(store, 'c', {
      afterSeq: seen.at(-1) ?? 0,
      waitMs: 1_000,
      scheduler,
      ...(takes === null ? {} : { demand }),
    });
    return events$.pipe(
      tap({
        next: ({ seq }) => {
          seen.push(seq);
        },
        complete: () => {
          isOver = true;
        },
      }),
      mergeMap(() => {
        if (takes === null || seen.length % takes !== 0) return EMPTY;
        demand.backlog(1);
        return breathe$;
      }),
      takeUntil(stays === null ? NEVER : timer(stays, scheduler)),
      ignoreElements(),
    );
  });
  const visits$ = timer(at, scheduler).pipe(
    mergeMap(() => visit$.pipe(repeat({ delay: () => (isOver ? EMPTY : timer(2, scheduler)) }))),
  );
  return { seen, visits$, isOver: () => isOver };
};

/** Plays a call in virtual time, in a process that dies after so many records and in one that goes on, and tells what readers saw and what there was. */
const play = async (dies: number, readers: readonly Reader[]) => {
  const scheduler = new VirtualTimeScheduler();
  const driver = inProcessCalls(() => scheduler.now());
  const store = createCallStore(driver);
  const reading = readers.map((it) => read(store, scheduler, it));
  const errors: unknown[] = [];
  const listen = (source$: Observable<unknown>) =>
    source$.subscribe({ error: (error: unknown) => errors.push(error) });
  for (const { visits$ } of reading) listen(visits$);
  const dying = dyingAfter(driver, dies);
  const call$ = payer(dying.driver, { scheduler }).agent.call$('Pay.', { callId: 'c', scheduler });
  call$.subscribe({ error: () => undefined });
  listen(
    timer(60, scheduler).pipe(
      mergeMap(() => {
        if (!dying.isDead()) return EMPTY;
        dying.end();
        const options = { scheduler, onUncertain: 'rerun' } as const;
        return journalIn(driver).resume$(payer(driver, { scheduler }).agent, 'c', options);
      }),
    ),
  );
  scheduler.flush();
  const records = (await all(createCallStore(driver).driver.read$('c', { kind: 'event' }))).flat();
  const seqs = records.map(({ seq }) => seq);
  return { errors, seqs, reading: reading.map(({ seen, isOver }) => ({ seen, isOver: isOver() })) };
};

describe('attach$, no matter what happens', () => {
  it('S7: readers that come and go see each event once and in order, also over a crash', async () => {
    let crashes = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 90 }),
        fc.array(reader, { minLength: 3, maxLength: 3 }),
        async (dies, readers) => {
          const { errors, seqs, reading } = await play(dies, readers);
          expect(errors).toEqual([]);
          expect(seqs.length).toBeGreaterThan(30);
          expect(new Set(seqs).size).toBe(seqs.length);
          for (const reader of reading) expect(reader).toEqual({ seen: seqs, isOver: true });
          crashes += dies < 60 ? 1 : 0;
        },
      ),
      { numRuns: 30 },
    );
    expect(crashes).toBeGreaterThan(0);
  });
});
