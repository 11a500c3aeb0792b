import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';

/** Other work of the file system must not wait for all of it. */
const concurrency = 16;

/** Runs work for each item, some of it at the same time. Resolves to the results, in any order. */
export const inParallel = <T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> => lastValueFrom(from(items).pipe(mergeMap(work, concurrency), toArray()));
