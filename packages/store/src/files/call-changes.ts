import { watch } from 'node:fs';
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
import { statIfExists } from './file-system.js';
import { segmentNumbers, segmentPath } from './segments.js';

/** Polls in addition to watching: not every file system reports changes, and none reports those of other machines. */
const pollMs = 1_000;

/** Emits on subscribe and whenever the directory of a call may have changed. Never completes. */
export const callChanges$ = (directory: string, scheduler: SchedulerLike): Observable<unknown> =>
  merge(
    // The directory may not exist yet.
    watched$(directory).pipe(retry({ delay: () => timer(pollMs, scheduler) })),
    timer(0, pollMs, scheduler).pipe(
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

/** The number and size of the last segment: they change with every write. */
const sizeOf = async (directory: string): Promise<string> => {
  const last = (await segmentNumbers(directory)).at(-1);
  if (last === undefined) return '';
  return `${last} ${(await statIfExists(segmentPath(directory, last)))?.size}`;
};
