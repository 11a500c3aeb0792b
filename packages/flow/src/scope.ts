import type { RetrievedPassage } from 'millrace/retrieval';
import type { CallOptions, ContentBlock, Reply } from 'millrace';

export interface Output {
  readonly text: string;
  /** The output as a value, if it is not just text. */
  readonly value?: unknown;
  /** The passages that are numbered in the text. */
  readonly passages?: readonly RetrievedPassage[];
  /** The reply, if the output is one. */
  readonly reply?: Reply;
  /** The error that `on_error` has handled. */
  readonly error?: FailureInfo;
  /** The rounds of a loop. */
  readonly loop?: { readonly rounds: readonly Round[]; readonly done: boolean };
}

/** The part of an error that a flow may show. */
export interface FailureInfo {
  readonly code: string;
  /** For end users. */
  readonly message: string;
  /** The HTTP status. */
  readonly status?: number | undefined;
}

/** The outputs of the components of a round, by ID. */
export type Round = Readonly<Record<string, unknown>>;

/** A value of a variable, and the place in the graph of the component that has set it. */
export interface VariableValue {
  readonly value: unknown;
  /** -1: set before the graph. Of two values, that with the later place counts. */
  readonly place: number;
}

export type Variables = ReadonlyMap<string, VariableValue>;

/** The variables as a graph inside a component starts with them. */
export const asOuter = (variables: Variables): Variables =>
  new Map([...variables].map(([name, { value }]) => [name, { value, place: -1 }]));

export const noOutput: Output = { text: '' };

/** The current item of an iteration, or the current round of a loop. */
export interface Item {
  readonly value: unknown;
  /** Starts at 1. */
  readonly index: number;
  /** The earlier rounds. */
  readonly rounds?: readonly Round[];
}

/** A message of the user or of the flow. */
export type ConversationMessage =
  | {
      readonly role: 'user';
      readonly content: readonly ContentBlock[];
      readonly name?: string;
      /** Of what other agents have said since the question. */
      readonly id?: string;
    }
  | { readonly role: 'assistant'; readonly content: readonly ContentBlock[] };

/** The values of `{{sys.…}}`. */
export interface Sys {
  readonly query: string;
  readonly sessionId: string;
  readonly history: readonly ConversationMessage[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** Whether a component waits, runs, or how it has ended. `suspended` waits for a person or another external result. */
export type ComponentStatus =
  'pending' | 'running' | 'done' | 'failed' | 'skipped' | 'suspended' | 'interrupted';

export interface FlowChange {
  readonly id: string;
  readonly status: ComponentStatus;
  readonly variables?: ReadonlyMap<string, unknown>;
}

/** The data that a component runs with. */
export interface Scope {
  readonly sys: Sys;
  readonly input: readonly ConversationMessage[];
  /** The outputs that its templates, and those of components inside it, refer to. */
  readonly outputs: ReadonlyMap<string, Output>;
  readonly items: ReadonlyMap<string, Item>;
  readonly variables: Variables;
  /** Reports how far a component is. */
  readonly report: (change: FlowChange) => void;
  readonly options: CallOptions;
  /** Whether it streams as the flow itself. */
  readonly streams: boolean;
  /** The prefix of call IDs, which contains the number of the current item. */
  readonly idPrefix: string;
}
