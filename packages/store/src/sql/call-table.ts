import type { CallQuery, NewRecord, RecordRange, StoredCall, StoredRecord } from 'millrace/journal';
import type { Observable } from 'rxjs';

/**
 * Calls and their records in a database, and the leases of their writers, which `tableCalls` acquires, renews and
 * releases. A call is named by its key, its id encoded by `storedName`. Rejects with a `MillraceError`. Aborting a signal
 * ends the wait for an unavailable server.
 */
export interface CallTable {
  /**
   * Gives a call, also a new one, to an owner if no other one holds it, and resolves to the position of its last record,
   * 0 if it has none. Resolves to undefined if another owner holds the call.
   */
  claim(claim: CallClaim, signal?: AbortSignal): Promise<number | undefined>;
  /** The sign of life of the owner of a call, which changes when it renews its lease: `owner expires_at`. Undefined if the call is not held. */
  holder(key: string): Promise<string | undefined>;
  /** Resolves to whether the owner still holds the call. */
  renew(key: string, owner: string, leaseMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Does nothing if another owner holds the call. */
  release(key: string, owner: string): Promise<unknown>;
  releaseAll(keys: readonly string[], signal?: AbortSignal): Promise<unknown>;
  /** Appends all records or none. Resolves to whether the owner still holds the call. */
  append(batch: RecordBatch, signal?: AbortSignal): Promise<boolean>;
  /** Reads records of a call in order: some of them, at least one if there are any. */
  read(key: string, range: RecordRange, signal?: AbortSignal): Promise<readonly StoredRecord[]>;
  /** Reads a page of the list of calls. May omit a call that is written meanwhile. */
  list(query: CallQuery, after: PageEnd | undefined, signal?: AbortSignal): Promise<CallPage>;
  /** Deletes a call that the owner holds. */
  remove(key: string, owner: string): Promise<unknown>;
  /**
   * Deletes the calls that are not held, and resolves to their keys and sessions; also to the keys of unknown calls. Gets
   * up to 500.
   */
  removeAll(keys: readonly string[]): Promise<readonly RemovedKey[]>;
  /** The keys of calls with new records; `''` if any may have some. Never completes. Followers also poll. */
  readonly notices$: Observable<string>;
}

export interface CallClaim {
  readonly key: string;
  readonly callId: string;
  readonly owner: string;
  /** When the lease expires unless it is renewed, in milliseconds from now. */
  readonly leaseMs: number;
  /** A lease with this sign of life counts as expired, also if the clock says otherwise: it is not renewed. */
  readonly silent: string | undefined;
}

export interface RemovedKey {
  readonly key: string;
  readonly sessionId?: string;
}

export interface RecordBatch {
  readonly key: string;
  readonly owner: string;
  readonly records: readonly NewRecord[];
  /**
   * The position of the last record before these: if they are there already, because an answer was lost, they are not
   * appended again. Undefined after an append that failed.
   */
  readonly after: number | undefined;
  /** The session of the call, if one of the records names it. */
  readonly sessionId: string | undefined;
  /** Whether the records must outlast a crash of the machine. */
  readonly isSafe: boolean;
}

/** The values by which the table orders calls, of the last call of a page. */
export type PageEnd = readonly (string | number)[];

export interface CallPage {
  readonly calls: readonly StoredCall[];
  /** Undefined if the page is empty: there are no further calls. */
  readonly end: PageEnd | undefined;
}
