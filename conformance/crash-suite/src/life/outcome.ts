import type { Message } from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import {
  combineLatest,
  defer,
  from,
  concatMap,
  map,
  type Observable,
  reduce,
  repeat,
  takeWhile,
  timer,
  last,
  toArray,
} from 'rxjs';
import type { Led } from './lead-call.js';
import type { Outcome } from './said.js';

/** Calls are given back within a second. */
const looks = 20;
const lookMs = 50;

/** Reads what is left of a call, and of those that have gone on with it, when all have ended. */
export const outcome$ = (
  callId: string,
  led: readonly Led[],
  calls: CallStoreDriver,
  memory$: Observable<readonly Message[]>,
): Observable<Outcome> => {
  const ids = led.map((it) => it.callId);
  return combineLatest({
    memory: memory$,
    records: from(ids).pipe(
      concatMap((id) => calls.read$(id).pipe(reduce((all, some) => [...all, ...some]))),
      toArray(),
    ),
    open: open$(calls, ids),
  }).pipe(map((left) => ({ ...left, callId, replies: led.map(({ reply }) => reply) })));
};

/** Those that are still open after a while: none, where all is well. */
const open$ = (calls: CallStoreDriver, ids: readonly string[]): Observable<readonly string[]> =>
  defer(() => calls.list$()).pipe(
    concatMap((some) => some),
    toArray(),
    map((all) => all.filter(({ callId, isOpen }) => isOpen && ids.includes(callId))),
    map((open) => open.map(({ callId }) => callId)),
    repeat({ count: looks, delay: () => timer(lookMs) }),
    takeWhile((open) => open.length > 0, true),
    last(),
  );
