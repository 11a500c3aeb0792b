import type { Message, ToolUseBlock } from '../message.js';
import type { Usage } from '../usage.js';

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

/** The version of the states that are saved now. */
export const stateVersion: SessionState['version'] = 1;
