import type { AppendOptions } from 'millrace';

export interface MessageText {
  readonly id: string;
  readonly json: string;
}

/** A message as it is stored, and the id of the one before it: null at the beginning. */
export interface EntryText extends MessageText {
  readonly after: string | null;
}

/** The ids of the head before and after a change. */
export interface HeadChange {
  readonly from: string | null;
  readonly to: string | null;
}

/**
 * One conversation in a database. `at` is the id of a message, or of a call for its last message. Each change is one
 * transaction. Rejects with a `MillraceError`: with `conflict` if `at` is unknown.
 */
export interface ConversationTable {
  /** The messages to a place as JSON, oldest first. Default: to the head. */
  load(at: string | null | undefined): Promise<readonly string[]>;
  /** The id of the message at a place. Default: the head. */
  last(at: string | null | undefined): Promise<string | null>;
  append(
    messages: readonly MessageText[],
    options: AppendOptions,
  ): Promise<{ readonly after: string | null; readonly head: HeadChange }>;
  /** A message and those that come after the same one. */
  branches(at: string): Promise<readonly string[]>;
  moveHead(to: string): Promise<HeadChange>;
  /** Deletes a message and those after it. */
  remove(at: string): Promise<{ readonly removed: readonly string[]; readonly head: HeadChange }>;
  all(): Promise<{ readonly entries: readonly EntryText[]; readonly head: string | null }>;
  replace(entries: readonly EntryText[], head: string | null): Promise<void>;
}
