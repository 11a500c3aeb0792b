/** What the loop may do when its iterations are used up. */
export type OnLimit = 'answer' | 'error' | 'partial';

/** How long things may take, in milliseconds. What is absent and has no default may take for ever. */
export interface Timeouts {
  /** The whole call: interceptors, model and tools; not the wait in the queue of a session, nor for an approval. Default: 1,800,000, which is 30 minutes; sub-agents have none of their own. */
  readonly callMs?: number;
  /** Each turn of the loop: the model, the tools it asks for, and what interceptors do. */
  readonly iterationMs?: number;
  /** From a request to the model to the first content. Each attempt has it anew. */
  readonly firstChunkMs?: number;
  /** From one piece of content to the next. It and `firstChunkMs` stand still while demand is closed. */
  readonly chunkMs?: number;
  /** Each run of a tool, all attempts together. Default: 60,000. */
  readonly toolMs?: number;
  /** Each wait for an approval. It is no part of `toolMs`. */
  readonly approvalMs?: number;
  /** Single tools by name, instead of `toolMs` and of what the tool says itself. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** How long a call may take, and how much it may do. */
export interface LimitOptions {
  /** Reasoning calls that the loop may make. Default: 10. */
  readonly maxIterations?: number;
  /** At the limit: a closing request without tools (`answer`, the default), a `maxIterations` error (`error`), or the reply so far (`partial`). */
  readonly onLimit?: OnLimit;
  /** In milliseconds. Default: 60,000 for each tool, and what the model has of its own. */
  readonly timeouts?: Timeouts;
  /** How many tools of a batch run at once; `true` is 5, `false` one by one. Default: true. */
  readonly parallel?: boolean | number;
  /** Characters of an observation before it is cut, with a marker. Default: 16,000. */
  readonly maxObservation?: number;
  /** Maximum number of tool runs: further ones are refused, and the model must answer without. Default: no limit. */
  readonly maxToolCalls?: number;
  /** Failures of one tool in a row that are taken; with the next one, the model is told to leave the tool alone. Default: 2. */
  readonly maxToolErrors?: number;
  /** How long the model waits for the news of a failed tool, times the failures in a row, in milliseconds. Default: 0. */
  readonly toolBackoffMs?: number;
  /** Maximum number of unreadable actions in a row that the model is asked to write again. Default: 2. */
  readonly maxParseRetries?: number;
  /** How long it waits before that, times the texts in a row, in milliseconds. Default: 800. */
  readonly parseBackoffMs?: number;
  /** Raises the temperature with each of them by `step` (default: 0.2) up to `max` (default: 1.5). Default: off. */
  readonly temperatureRamp?: { readonly step?: number; readonly max?: number };
  /** How often requests may be sent again, those of sub-agents included. Default: 10. */
  readonly retryBudget?: number;
}

/** The limits of one call, with what holds by default. */
export interface Limits extends Required<
  Omit<LimitOptions, 'parallel' | 'temperatureRamp' | 'retryBudget'>
> {
  readonly parallel: number;
  readonly temperatureRamp: { readonly step: number; readonly max: number } | undefined;
}
