import { type CallSummary, prune$ } from 'millrace/journal';
import { lastValueFrom } from 'rxjs';
import { assistantName } from '../create-assistant.js';
import type { RunStore } from './open-run-store.js';

/** Removes the runs of this command that ended that long ago. Keeps runs of other programs in the same store. */
export const removeOldRuns = async ({ store }: RunStore, olderThanMs: number): Promise<void> => {
  const keep = (run: CallSummary): boolean =>
    run.status === 'unreadable' || run.agent !== assistantName;
  await lastValueFrom(prune$(store, { olderThanMs, keep }), { defaultValue: undefined });
};
