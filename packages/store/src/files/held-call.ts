import type { Claim, NewRecord } from '@millrace/core/journal';
import { defer, from } from 'rxjs';
import { taken } from '../taken.js';
import type { AppendRecords } from './append-records.js';
import type { FileLock } from './file-lock.js';
import type { OpenSegment } from './open-segment.js';

/** A call that is held for writing. */
export interface HeldCall {
  readonly claim: Claim;
  /** Gives it back: at once, or when what is being written is written. */
  release(): void;
}

/** Makes the hold of a call whose lock is had and whose segment is begun. `lost` makes the error of who has it no more. */
export const heldCall = (
  callId: string,
  lock: FileLock,
  { file, place, remove }: OpenSegment,
  append: AppendRecords,
  onLost: () => void,
  lost: () => Error,
): HeldCall => {
  const state = { isHeld: true, isWriting: false, isEmpty: place.position === 0 };
  const end = (): void => {
    // A call of which nothing is written down is none.
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
          if (!state.isHeld) throw taken(callId);
          return from(write(records));
        }),
    },
    release: () => {
      state.isHeld = false;
      if (!state.isWriting) end();
    },
  };
};
