import {
  concatMap,
  defer,
  delay,
  lastValueFrom,
  map,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
} from 'rxjs';
import type { SessionStore } from '../layers/sessions/index.js';
import { type CallStoreDriver, inProcessCalls, type NewRecord } from './index.js';

/** A store that takes its time to write. */
export const slow = (driver: CallStoreDriver, time: SchedulerLike): CallStoreDriver => ({
  ...driver,
  claim$: (callId) =>
    driver.claim$(callId).pipe(
      map(({ append$ }) => ({
        append$: (batch) => of(batch).pipe(delay(1, time), concatMap(append$)),
      })),
    ),
});

/** A process that ends when so much is written, records and states of sessions: what comes behind is lost, and nobody hears of it. `end` gives back what it held. */
export const dyingAfter = (driver: CallStoreDriver, writes: number) => {
  const ended$ = new Subject<never>();
  let left = writes;
  let isDead = false;
  const dead$ = defer(() => {
    isDead = true;
    return ended$;
  });
  const dying: CallStoreDriver = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({
          append$: (batch: readonly NewRecord[]): Observable<unknown> =>
            defer(() => {
              const kept = batch.slice(0, left);
              left -= kept.length;
              const done$ = claim.append$(kept);
              return kept.length === batch.length ? done$ : done$.pipe(concatMap(() => dead$));
            }),
        })),
      ),
  };
  const unlessDead$ = (save: () => Observable<number>): Observable<number> =>
    defer(() => {
      if (left === 0) return dead$;
      left -= 1;
      return save();
    });
  const sessionsOf = (store: SessionStore): SessionStore => ({
    ...store,
    save$: (...given) => unlessDead$(() => store.save$(...given)),
    append$: (...given) => unlessDead$(() => store.append$?.(...given) ?? dead$),
  });
  return {
    driver: dying,
    sessionsOf,
    isDead: () => isDead,
    written: () => writes - left,
    end: () => {
      left = 0;
      ended$.error(new Error('killed'));
    },
  };
};

/** Runs something in a process that ends when so many records are written. */
export const runUntil = (
  driver: CallStoreDriver,
  records: number,
  run: (dying: CallStoreDriver) => Observable<unknown>,
): void => {
  const { driver: dying, end } = dyingAfter(driver, records);
  run(dying).subscribe({ error: () => undefined });
  end();
};

/** What a process has left that ended when a step of its call `c` was written. */
export const leftAt = async (
  step: string,
  run: (driver: CallStoreDriver) => Observable<unknown>,
): Promise<CallStoreDriver> => {
  const driver = inProcessCalls();
  runUntil(driver, await recordsOf(run, step), run);
  return driver;
};

/** The names of the steps of the call `c` that are written down, without its id. */
export const stepsIn = async (driver: CallStoreDriver): Promise<readonly string[]> => {
  const steps = await lastValueFrom(driver.read$('c', { kind: 'step' }), { defaultValue: [] });
  return steps.map(({ name }) => name.replace(/^c\//u, ''));
};

/** How many records a whole call makes up to a step, or in all. */
export const recordsOf = async (
  run: (driver: CallStoreDriver) => Observable<unknown>,
  step?: string,
): Promise<number> => {
  const driver = inProcessCalls();
  await lastValueFrom(run(driver));
  const records = await lastValueFrom(driver.read$('c'));
  if (step === undefined) return records.length;
  const at = records.findIndex(({ name }) => name === `c/${step}`);
  if (at === -1) throw new Error(`No step '${step}': ${(await stepsIn(driver)).join(', ')}`);
  return at + 1;
};
