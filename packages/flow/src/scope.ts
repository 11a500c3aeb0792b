import type { RetrievedPassage } from '@millrace/core/retrieval';
import type { CallOptions, ContentBlock, Reply } from '@millrace/core';

/** What came of a component. */
export interface Output {
  readonly text: string;
  /** What it is as a value, where it is one of itself, and not only a text. */
  readonly value?: unknown;
  /** The passages that the text shows, by their numbers. */
  readonly passages?: readonly RetrievedPassage[];
  /** The reply that it is, where it is one. */
  readonly reply?: Reply;
}

/** The output of what has not run. */
export const noOutput: Output = { text: '' };

/** What an iteration is at. */
export interface Item {
  readonly value: unknown;
  /** From 1. */
  readonly index: number;
}

/** What somebody has said. */
export type Spoken =
  | { readonly role: 'user'; readonly content: readonly ContentBlock[]; readonly name?: string }
  | { readonly role: 'assistant'; readonly content: readonly ContentBlock[] };

/** What templates can ask for without naming a component. */
export interface Sys {
  readonly query: string;
  readonly sessionId: string;
  /** What was said before. */
  readonly history: readonly Spoken[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** What one component finds when it runs. */
export interface Scope {
  readonly sys: Sys;
  /** What the flow was asked. */
  readonly asked: readonly Spoken[];
  /** The outputs that its templates name, and those within it. */
  readonly outputs: ReadonlyMap<string, Output>;
  /** Of the iterations around it, by their ids. */
  readonly items: ReadonlyMap<string, Item>;
  /** What the calls of components are made with. */
  readonly options: CallOptions;
  /** Whether its words are those of the flow while they come. */
  readonly speaks: boolean;
  /** Where in the flow it is: what ids of calls begin with. */
  readonly place: string;
}
