import type { CallStoreDriver } from 'millrace/journal';
import {
  concatMap,
  defer,
  endWith,
  firstValueFrom,
  ignoreElements,
  map,
  range,
  toArray,
} from 'rxjs';

/** A step of the size that what came of a tool has. */
const text = JSON.stringify({ content: 'x'.repeat(300) });

/** Milliseconds that each of so many steps took to be safe, one after the other. */
export const timeAppends = (
  calls: CallStoreDriver,
  callId: string,
  count: number,
): Promise<readonly number[]> =>
  firstValueFrom(
    calls.claim$(callId).pipe(
      concatMap((claim) =>
        range(0, count).pipe(
          concatMap((index) =>
            defer(() => {
              const startedAt = performance.now();
              return claim
                .append$([{ kind: 'step', name: `${callId}/${index}`, seq: index, text }])
                .pipe(
                  ignoreElements(),
                  endWith(undefined),
                  map(() => performance.now() - startedAt),
                );
            }),
          ),
          toArray(),
        ),
      ),
    ),
  );
