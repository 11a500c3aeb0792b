import { type CallStoreDriver, createCallStore } from 'millrace/journal';
import { first, firstValueFrom, lastValueFrom, tap } from 'rxjs';
import { question } from '../lookup.js';
import { follow$ } from './follow.js';
import { loopAgent } from './loop-agent.js';

/** What was seen of a call that somebody follows. */
export interface Following {
  readonly events: number;
  /** From the start of the call until its reply. */
  readonly callMs: number;
  /** From when an event was told until who follows had it, in milliseconds, of each. */
  readonly lagsMs: readonly number[];
}

/** Makes a call, and follows it through the store from its beginning to its end, in the same process. */
export const timeFollowing = async (
  calls: CallStoreDriver,
  callId: string,
  script: string,
): Promise<Following> => {
  const toldAt = new Map<number, number>();
  const readAt = new Map<number, number>();
  const followed = firstValueFrom(
    follow$(createCallStore(calls).driver, callId).pipe(
      tap(({ seq }) => {
        readAt.set(seq, performance.now());
      }),
      first(({ name }) => name === 'postCall'),
    ),
  );
  const startedAt = performance.now();
  const told$ = loopAgent(script, calls).stream$(question, { callId });
  await lastValueFrom(told$.pipe(tap(({ seq }) => toldAt.set(seq, performance.now()))));
  const callMs = performance.now() - startedAt;
  await followed;
  const lagsMs = [...toldAt].map(([seq, at]) => (readAt.get(seq) ?? NaN) - at);
  return { events: toldAt.size, callMs, lagsMs };
};
