import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import {
  catchError,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  from,
  merge,
  Observable,
  retry,
  type SchedulerLike,
  timer,
} from 'rxjs';
import { segmentNumbers, segmentPath } from './segments.js';

/** The files of a call are looked at once a second: watching them is quicker, but not all file systems tell of changes, and none of those by other machines. */
const lookMs = 1_000;

/** Emits when there may be more in the directory of a call, at the first look, too. Never completes. */
export const callChanges$ = (directory: string, scheduler: SchedulerLike): Observable<unknown> =>
  merge(
    // There may be no such directory yet.
    watched$(directory).pipe(retry({ delay: () => timer(lookMs, scheduler) })),
    timer(0, lookMs, scheduler).pipe(
      exhaustMap(() => from(sizeOf(directory)).pipe(catchError(() => EMPTY))),
      distinctUntilChanged(),
    ),
  );

const watched$ = (directory: string): Observable<unknown> =>
  new Observable((subscriber) => {
    const watcher = watch(directory, { persistent: false }, () => subscriber.next(undefined));
    watcher.on('error', (error) => subscriber.error(error));
    return () => watcher.close();
  });

/** The last segment and its length, which tell whether something was written. */
const sizeOf = async (directory: string): Promise<string> => {
  const last = (await segmentNumbers(directory)).at(-1);
  if (last === undefined) return '';
  return `${last} ${(await stat(segmentPath(directory, last))).size}`;
};
