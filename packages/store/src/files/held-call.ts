import type { Claim, NewRecord } from 'millrace/journal';
import { defer, finalize, from } from 'rxjs';
import { callInUse } from '../closing.js';
import type { RecordWriter } from './append-records.js';
import type { FileLock } from './file-lock.js';

/** A call that this process has claimed for writing. */
export interface HeldCall {
  readonly claim: Claim;
  /** Whether it has no records, of this writer or of one that has taken over. */
  isEmpty(): boolean;
  /** Releases the call now, or after the pending write. */
  release(): void;
  /** Another process has taken the lock. Reported now, or after the outcome of the pending write. */
  lose(): void;
}

export interface HeldCallOptions {
  readonly callId: string;
  readonly lock: FileLock;
  readonly writer: RecordWriter;
  /** Removes the call, which has no records yet; undefined if it has some. */
  readonly remove: (() => void) | undefined;
  readonly onLost: () => void;
  /** Creates the error for a call that another writer took. */
  readonly lost: () => Error;
}

/** Holds a call, given its lock and its writer. */
export const heldCall = (options: HeldCallOptions): HeldCall => {
  const { callId, lock, writer, onLost, lost } = options;
  let { remove } = options;
  const state = { isHeld: true, isWriting: false, isLost: false };
  const end = (): void => {
    // A call without records does not exist.
    if (lock.isHeld()) remove?.();
    lock.release();
    writer.close();
  };
  const write = async (records: readonly NewRecord[]): Promise<void> => {
    state.isWriting = true;
    if (records.length > 0) remove = undefined;
    try {
      if (await writer.append(records)) return;
      state.isLost = true;
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
        }).pipe(
          finalize(() => {
            if (state.isLost) onLost();
          }),
        ),
    },
    isEmpty: () => state.isHeld && remove !== undefined && writer.isLast(),
    release: () => {
      state.isHeld = false;
      if (!state.isWriting) end();
    },
    lose: () => {
      state.isLost = true;
      if (!state.isWriting) onLost();
    },
  };
};
