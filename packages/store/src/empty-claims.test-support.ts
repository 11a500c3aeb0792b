import { deepStrictEqual } from 'node:assert';
import type { CallStoreDriver, StoredCall } from '@millrace/core/journal';
import { concatMap, endWith, firstValueFrom, ignoreElements, lastValueFrom, toArray } from 'rxjs';

/** Holds a store to it that a call of which nothing is written down is none, once its claim is given back. */
export const checkEmptyClaims = async (calls: CallStoreDriver): Promise<void> => {
  const idsWhen = async (isDone: (found: readonly StoredCall[]) => boolean) => {
    for (;;) {
      const found = (await lastValueFrom(calls.list$().pipe(toArray()))).flat();
      if (isDone(found)) return found.map(({ callId }) => callId);
    }
  };
  await firstValueFrom(calls.claim$('empty'));
  deepStrictEqual(await idsWhen((found) => found.length === 0), []);
  const step = { kind: 'step', name: 's', seq: 0, text: '1' } as const;
  const write = () =>
    firstValueFrom(
      calls
        .claim$('empty')
        .pipe(concatMap((claim) => claim.append$([step]).pipe(ignoreElements(), endWith(claim)))),
    );
  await write();
  const isFree = (found: readonly StoredCall[]): boolean => found.every(({ isOpen }) => !isOpen);
  deepStrictEqual(await idsWhen(isFree), ['empty']);
  // Nothing more is written, and what there is stays.
  await firstValueFrom(calls.claim$('empty'));
  deepStrictEqual(await idsWhen(isFree), ['empty']);
  const read = (await lastValueFrom(calls.read$('empty').pipe(toArray()))).flat();
  deepStrictEqual(read, [{ ...step, position: 1 }]);
};
