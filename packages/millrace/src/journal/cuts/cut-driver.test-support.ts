import { concatMap, defer, finalize, map, type Observable, Subject, throwError } from 'rxjs';
import { MillraceError } from '../../index.js';
import type { CallStoreDriver, Claim, NewRecord } from '../index.js';

/**
 * How a process is cut: it ends when so many records are written (`killed`), it ends before it hears that the last of them was written (`untold`), or its store
 * writes no more than these and says so (`full`).
 */
export interface Cut {
  readonly how: 'killed' | 'untold' | 'full';
  readonly records: number;
}

/** A driver of a process that is cut. */
export interface CutDriver {
  readonly driver: CallStoreDriver;
  /** The process has ended. */
  readonly isDead: () => boolean;
  /** What the process holds falls apart. */
  readonly kill: () => void;
  /** How many claims are held. */
  readonly held: () => number;
}

/** Makes the driver of a process that is cut, or of one that is not. */
export const cutDriver = (driver: CallStoreDriver, cut: Cut | undefined): CutDriver => {
  const ended$ = new Subject<never>();
  let left = cut?.records ?? Infinity;
  let isDead = false;
  let held = 0;
  const die = (): Observable<never> => {
    isDead = true;
    return ended$;
  };
  const appended$ = (claim: Claim, batch: readonly NewRecord[]): Observable<unknown> =>
    defer(() => {
      if (isDead) return ended$;
      if (cut?.how === 'full' && batch.length > left) {
        left = 0;
        return throwError(() => new MillraceError('store', 'The disk is full.'));
      }
      const kept = batch.slice(0, left);
      left -= kept.length;
      const isLast = kept.length < batch.length || (cut?.how === 'untold' && left === 0);
      return claim.append$(kept).pipe(isLast ? concatMap(die) : map((done) => done));
    });
  return {
    driver: {
      ...driver,
      claim$: (callId) =>
        defer(() => {
          held += 1;
          return driver.claim$(callId).pipe(
            map((claim) => ({
              append$: (batch: readonly NewRecord[]) => appended$(claim, batch),
            })),
            finalize(() => (held -= 1)),
          );
        }),
    },
    isDead: () => isDead,
    kill: () => ended$.error(new Error('killed')),
    held: () => held,
  };
};
