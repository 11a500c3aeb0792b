import type { RetrievedPassage } from '@millrace/core/retrieval';
import type { CallOptions, ContentBlock, Reply } from '@millrace/core';

export interface Output {
  readonly text: string;
  /** The output as a value, if it is not just text. */
  readonly value?: unknown;
  /** The passages that are numbered in the text. */
  readonly passages?: readonly RetrievedPassage[];
  /** The reply, if the output is one. */
  readonly reply?: Reply;
}

/** The output of a component that has not run. */
export const noOutput: Output = { text: '' };

/** The current item of an iteration. */
export interface Item {
  readonly value: unknown;
  /** Starts at 1. */
  readonly index: number;
}

/** A message of the user or of the flow. */
export type ConversationMessage =
  | { readonly role: 'user'; readonly content: readonly ContentBlock[]; readonly name?: string }
  | { readonly role: 'assistant'; readonly content: readonly ContentBlock[] };

/** The values of `{{sys.…}}`. */
export interface Sys {
  readonly query: string;
  readonly sessionId: string;
  readonly history: readonly ConversationMessage[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** The data that a component runs with. */
export interface Scope {
  readonly sys: Sys;
  readonly input: readonly ConversationMessage[];
  /** The outputs that its templates, and those of components inside it, refer to. */
  readonly outputs: ReadonlyMap<string, Output>;
  readonly items: ReadonlyMap<string, Item>;
  /** The base options of the components' calls. */
  readonly options: CallOptions;
  /** Whether it streams as the flow itself. */
  readonly streams: boolean;
  /** The prefix of call IDs, which contains the number of the current item. */
  readonly idPrefix: string;
}
