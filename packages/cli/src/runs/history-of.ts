import { isRecord, parsedJson } from '@millrace/core/adapter';
import type { StoreOfCalls } from '@millrace/core/journal';
import { defaultIfEmpty, filter, map, mergeMap, type Observable, take } from 'rxjs';

/** Emits the recorded messages before the start of a run. */
export const historyOf$ = (
  { driver }: StoreOfCalls,
  callId: string,
): Observable<readonly unknown[]> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    filter(({ name }) => name === `${callId}/open`),
    take(1),
    map(({ text }) => {
      const opening = parsedJson(text);
      const history: unknown = isRecord(opening) ? opening['history'] : undefined;
      return Array.isArray(history) ? history.map((message: unknown) => message) : [];
    }),
    defaultIfEmpty([]),
  );
