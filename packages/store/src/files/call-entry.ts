import type { EndedCalls } from './ended-calls.js';
import type { UnfinishedCalls } from './unfinished-calls.js';

/** The entry in the index of a call that this process writes. */
export interface CallEntry {
  /**
   * Prepares it for records that are about to be written, and that end the call at this time, if given. Resolves to
   * directories that must be synced with them.
   */
  before(endedAt: number | undefined): Promise<readonly string[]>;
  /** Replaces the former entry. The records and the directories are on disk. */
  readonly after: (endedAt: number | undefined) => Promise<void>;
  /** Deletes the entry of a call without records. */
  discard(): void;
}

/** The state of a call when its writer claims it. */
export interface ClaimedCall {
  /** The name of its directory. */
  readonly name: string;
  /** Whether it has no records yet. */
  readonly isNew: boolean;
  /** When it ended, if it has. */
  readonly endedAt: number | undefined;
}

/** Creates the entry of a call whose lock this process has. A new one is listed as soon as this resolves. */
export const openEntry = async (
  unfinished: UnfinishedCalls,
  ended: EndedCalls,
  { name, isNew, endedAt }: ClaimedCall,
): Promise<CallEntry> => {
  if (isNew) await unfinished.add(name);
  const hasEntry = isNew || unfinished.has(name);
  /** An entry of a call with records was on disk before these. */
  const state = { hasEntry, isSynced: hasEntry && !isNew, endedAt };
  let added: number | undefined;
  const keepUnfinished = async (): Promise<readonly string[]> => {
    if (state.isSynced) return [];
    if (!state.hasEntry) await unfinished.add(name);
    state.hasEntry = true;
    await unfinished.sync();
    state.isSynced = true;
    return [];
  };
  return {
    before: async (end) => {
      added = undefined;
      if (end === undefined) return keepUnfinished();
      if (end === state.endedAt) return [];
      const directory = await ended.add({ name, endedAt: end });
      if (directory === undefined) return keepUnfinished();
      added = end;
      if (state.endedAt !== undefined || state.isSynced) return [directory];
      await ended.sync(directory);
      return [];
    },
    after: async (end) => {
      const former = state.endedAt;
      if (end !== undefined && end === former) return;
      state.endedAt = added;
      if (added !== undefined && state.hasEntry) {
        state.hasEntry = state.isSynced = false;
        await unfinished.remove(name);
      }
      if (former !== undefined) await ended.remove({ name, endedAt: former });
    },
    discard: () => unfinished.discard(name),
  };
};
