import type { Message, ToolUseBlock } from '../message.js';
import type { Usage } from '../usage.js';
import { type Observable, defer, of } from 'rxjs';
import { copied } from '../frozen.js';
import { MillraceError } from '../errors.js';

/** All there is to know of a session, as plain JSON. */
export interface SessionState {
  /** The form that it has: other ones have other numbers. */
  readonly version: 1;
  /** What the memory of the session keeps, oldest first. `details` of results are left out where JSON cannot hold them. */
  readonly messages: readonly Message[];
  /** Which groups of tools are active, by name. */
  readonly groups: ToolGroupStates;
  /** What somebody decides on. */
  readonly approvals: readonly PendingApproval[];
  /** Added up over the calls of the session, also over those that failed. */
  readonly usage: Usage;
  /** Whether the last call ended by an interrupt. */
  readonly interrupted: boolean;
  /** The last call that began, where it is one that a journal writes down: whoever goes on with it knows by this what is done already. */
  readonly lastCall?: LastCall;
  /** The calls before that one that a journal writes down, oldest first, the last 100 of them: what of them goes on, or is asked for again, is not there twice. */
  readonly earlierCalls?: readonly EarlierCall[];
}

/** What a state has of a call that may be resumed. */
export interface LastCall {
  /** Its id, as in the journal. */
  readonly callId: string;
  /** What the session had cost before it. */
  readonly usageBefore: Usage;
  /** Whether all of it is in the state. */
  readonly hasEnded: boolean;
}

/** What a state has of a call that others have followed. */
export interface EarlierCall {
  /** Its id, as in the journal. */
  readonly callId: string;
  /** What of it is in the usage of the session. */
  readonly usage: Usage;
  /** Whether all of it is in the state. */
  readonly hasEnded: boolean;
}

/** Whether groups of tools are active, by name. */
export type ToolGroupStates = Readonly<Record<string, boolean>>;

/** A tool use of a running call that waits for approval. */
export interface PendingApproval {
  /** The call that asked for the tool: one of the session's, or one below it. */
  readonly callId: string;
  /** With the input that it would run with. */
  readonly toolUse: ToolUseBlock;
}

export const stateVersion: SessionState['version'] = 1;

/** A state as a store has it. */
export interface StoredSession {
  /** Another one after each save. */
  readonly version: number;
  /** What was saved. Whoever loads it checks it, as `session.loadState` does. */
  readonly state: unknown;
}

/** Keeps the states of sessions. A save names the version it follows, and changes nothing if that is not the current one: of several concurrent saves, one wins. Copies states in and out. An id is any text and never a path; a store rejects ids that it cannot keep with `invalidRequest`. Everything is cold. */
export interface SessionStore {
  /** Emits what is there, or `undefined`, and completes. */
  load$(sessionId: string): Observable<StoredSession | undefined>;
  /** Saves a state in the place of the one of this version, or as the first one where there is none to be, and emits its own version. Errors with `conflict` where there is another version by now, or none any more. */
  save$(
    sessionId: string,
    state: SessionState,
    expectedVersion: number | undefined,
  ): Observable<number>;
  /** Emits the ids of all sessions there are, in any order, and completes. */
  list$(): Observable<readonly string[]>;
  /** Removes a session, and completes; one that is not there is no error. */
  remove$(sessionId: string): Observable<unknown>;
}

/** Keeps the states of sessions in this process, for as long as it is held. A version never comes again, also where a session is removed and saved anew. */
export const inProcessSessions = (): SessionStore => {
  const stored = new Map<string, StoredSession>();
  let last = 0;
  return {
    load$: (sessionId) =>
      defer(() => {
        const found = stored.get(sessionId);
        return of(found && { version: found.version, state: copied(found.state) });
      }),
    save$: (sessionId, state, expectedVersion) =>
      defer(() => {
        const version = stored.get(sessionId)?.version;
        if (version !== expectedVersion) throw sessionConflict(sessionId, expectedVersion, version);
        last += 1;
        stored.set(sessionId, { version: last, state: copied(state) });
        return of(last);
      }),
    list$: () => defer(() => of([...stored.keys()])),
    remove$: (sessionId) => defer(() => of(stored.delete(sessionId))),
  };
};

/** The error of a save that does not follow what is there. */
export const sessionConflict = (
  sessionId: string,
  expected: number | undefined,
  found: number | undefined,
): MillraceError =>
  new MillraceError(
    'conflict',
    `The session '${sessionId}' was to be saved after ${versioned(expected)}, and the store has ${versioned(found)}. Somebody else has saved or removed it: open it again.`,
  );

const versioned = (version: number | undefined): string =>
  version === undefined ? 'no state' : `version ${version}`;
