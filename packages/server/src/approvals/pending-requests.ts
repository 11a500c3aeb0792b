import type { Verdict } from 'millrace';
import {
  distinctUntilChanged,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
} from 'rxjs';
import type { ReadVerdict } from './read-verdict.js';

/** A tool call that waits for a decision. */
export interface PendingApproval {
  /** Authorizes its bearer to decide, once. */
  readonly token: string;
  readonly tool: string;
  readonly toolCallId: string;
  readonly callId: string;
  readonly sessionId?: string;
  /** The input as plain JSON, including preset values, before the tool's schema transforms it. */
  readonly input: unknown;
  /** The digest of the tool call without the values that the program sets: a decision on another one does not count. */
  readonly digest: string;
  /** Milliseconds since the epoch, by the scheduler of the call. */
  readonly expiresAt: number;
  /** The client may edit the input. A test of the queue may still refuse an edit. */
  readonly mayEdit?: true;
}

/** Decides on tool calls that wait for approval. */
export interface ApprovalDesk {
  /** Hot: emits the pending requests, oldest first, on subscribe and on every change. Never errors, never completes. */
  readonly requests$: Observable<readonly PendingApproval[]>;
  /**
   * Decides for a user, once per token; resolves after the call has received the verdict. The same decision again does nothing. Validates the verdict of the client: an
   * `invalidRequest` error with status 400, 403 if the client may not edit the input, or 422 if the tool rejects it, leaves the token valid. Rejects with
   * `invalidResume` if the token is not valid (status 401), has another decision or other arguments (409), or has
   * expired or is no longer pending (410).
   */
  decide(token: string, verdict: Verdict): Promise<void>;
}

export interface PendingRequest {
  /** The public view of the request. */
  readonly shown: unknown;
  /** Milliseconds since the epoch, by the scheduler. */
  readonly expiresAt: number;
  readonly scheduler: SchedulerLike;
}

export type Outcome = 'decided' | 'expired' | 'withdrawn';

/** The pending requests, and the outcomes of earlier ones. */
export interface PendingRequests<Entry extends PendingRequest> {
  /** Hot: emits the public view of all pending requests, then again on every change. Never errors, never completes. */
  readonly shown$: Observable<readonly Entry['shown'][]>;
  add(id: string, entry: Entry): void;
  find(id: string): Entry | undefined;
  /** Ends a request. Returns false if it is not pending. */
  settle(id: string, ending: Outcome, verdict?: ReadVerdict): boolean;
  /** The outcome of a request, as long as it is remembered. */
  outcomeOf(id: string): Outcome | undefined;
  /** The verdict of a request that was decided, as long as it is remembered. */
  verdictOf(id: string): ReadVerdict | undefined;
}

export const hasExpired = ({ expiresAt, scheduler }: Omit<PendingRequest, 'shown'>): boolean =>
  scheduler.now() >= expiresAt;

interface Ended extends Omit<PendingRequest, 'shown'> {
  readonly ending: Outcome;
  readonly verdict: ReadVerdict | undefined;
}

/** Remembers up to `maxOutcomes`. Each new outcome evicts the expired ones. */
export const createPendingRequests = <Entry extends PendingRequest>(
  maxOutcomes: number,
): PendingRequests<Entry> => {
  const waiting = new Map<string, Entry>();
  const outcomes = new Map<string, Ended>();
  const changed$ = new Subject<void>();
  let all: readonly Entry['shown'][] | undefined;

  const change = (): void => {
    all = undefined;
    changed$.next();
  };
  const forget = (): void => {
    for (const [id, ending] of outcomes) {
      if (outcomes.size < maxOutcomes && !hasExpired(ending)) return;
      outcomes.delete(id);
    }
  };

  return {
    // Computes the list on emission: a change during a notification is never followed by an older list.
    shown$: merge(changed$, of(undefined)).pipe(
      map(() => (all ??= Array.from(waiting.values(), ({ shown }) => shown))),
      distinctUntilChanged(),
    ),
    add: (id, entry) => {
      waiting.set(id, entry);
      change();
    },
    find: (id) => waiting.get(id),
    settle: (id, ending, verdict) => {
      const entry = waiting.get(id);
      if (entry === undefined) return false;
      const { expiresAt, scheduler } = entry;
      waiting.delete(id);
      forget();
      outcomes.set(id, { ending, verdict, expiresAt, scheduler });
      change();
      return true;
    },
    outcomeOf: (id) => outcomes.get(id)?.ending,
    verdictOf: (id) => outcomes.get(id)?.verdict,
  };
};
