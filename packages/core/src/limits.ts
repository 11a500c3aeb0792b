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

/** The numbers of one call. */
export interface Limits {
  readonly maxIterations: number;
  readonly onLimit: OnLimit;
  readonly timeouts: Timeouts;
  /** How many tools of a batch run at once. */
  readonly parallel: number;
  /** Characters that an observation may have. */
  readonly maxObservation: number;
  /** Tools that are run; more are refused. */
  readonly maxToolCalls: number;
  /** Failures of one tool in a row after which the model is told to leave it, one more than these. */
  readonly maxToolErrors: number;
  /** How long a failure is kept back, times the failures in a row, in milliseconds. */
  readonly toolBackoffMs: number;
  /** Texts in a row that cannot be read as an action, and are asked for again. */
  readonly maxParseRetries: number;
  /** How long the model is let wait before it is asked again, times the texts in a row, in milliseconds. */
  readonly parseBackoffMs: number;
  readonly temperatureRamp: TemperatureRamp | undefined;
  /** What becomes of a tool of which nobody knows whether it has run. */
  readonly onUncertain: 'ask' | 'report' | 'rerun';
}

/** How the temperature rises from one unreadable text to the next. */
export interface TemperatureRamp {
  readonly step: number;
  readonly max: number;
}
