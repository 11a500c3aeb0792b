import { deepStrictEqual } from 'node:assert';
import type { CallStoreDriver, StoredCall } from 'millrace/journal';
import { concatMap, endWith, firstValueFrom, ignoreElements, lastValueFrom, toArray } from 'rxjs';

/** Checks that a call without records does not exist after its claim is released. */
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
  // A claim without an append keeps the existing records.
  await firstValueFrom(calls.claim$('empty'));
  deepStrictEqual(await idsWhen(isFree), ['empty']);
  const read = (await lastValueFrom(calls.read$('empty').pipe(toArray()))).flat();
  deepStrictEqual(read, [{ ...step, position: 1 }]);
};
