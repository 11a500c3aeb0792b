import { concatMap, defer, lastValueFrom, map, type Observable, Subject } from 'rxjs';
import { type CallStoreDriver, inProcessCalls, type NewRecord } from './index.js';

/** A process that ends when so many records are written: what comes behind is lost, and nobody hears of it. */
export const endingAfter = (driver: CallStoreDriver, records: number) => {
  const ended$ = new Subject<never>();
  let left = records;
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
              return kept.length === batch.length ? done$ : done$.pipe(concatMap(() => ended$));
            }),
        })),
      ),
  };
  return { driver: dying, end: () => ended$.error(new Error('killed')) };
};

/** Runs something in a process that ends when so many records are written. */
export const runUntil = (
  driver: CallStoreDriver,
  records: number,
  run: (dying: CallStoreDriver) => Observable<unknown>,
): void => {
  const { driver: dying, end } = endingAfter(driver, records);
  run(dying).subscribe({ error: () => undefined });
  end();
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
