import type { Claim, NewRecord } from '@millrace/core/journal';
import { defer, from } from 'rxjs';
import { callInUse } from '../closing.js';
import type { AppendRecords } from './append-records.js';
import type { FileLock } from './file-lock.js';
import type { OpenSegment } from './open-segment.js';

/** A call that this process has claimed for writing. */
export interface HeldCall {
  readonly claim: Claim;
  /** Releases the call now, or after the pending write. */
  release(): void;
}

/** Holds a call, given its lock and its new segment. `lost` creates the error for a call that another writer took. */
export const heldCall = (
  callId: string,
  lock: FileLock,
  { file, cursor, remove }: OpenSegment,
  append: AppendRecords,
  onLost: () => void,
  lost: () => Error,
): HeldCall => {
  const state = { isHeld: true, isWriting: false, isEmpty: cursor.position === 0 };
  const end = (): void => {
    // A call without records does not exist.
    if (state.isEmpty && lock.isHeld()) remove();
    lock.release();
    file.close().catch(() => undefined);
  };
  const write = async (records: readonly NewRecord[]): Promise<void> => {
    state.isWriting = true;
    if (records.length > 0) state.isEmpty = false;
    try {
      if (await append(records)) return;
      onLost();
      throw lost();
    } finally {
      state.isWriting = false;
      if (!state.isHeld) end();
    }
  };
  return {
    claim: {
      append$: (records) =>
        defer(() => {
          if (!state.isHeld) throw callInUse(callId);
          return from(write(records));
        }),
    },
    release: () => {
      state.isHeld = false;
      if (!state.isWriting) end();
    },
  };
};
