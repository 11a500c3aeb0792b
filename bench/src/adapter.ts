/** What an adapter is opened with. */
export interface Setup {
  /** The address of the model that plays, up to and including `/v1`. */
  readonly baseURL: string;
  /** Is told of each chunk that comes out of the model's stream. Only adapters of Millrace know it. */
  readonly onModelChunk?: (() => void) | undefined;
}

/** What a call may be told. */
export interface CallOptions {
  /** Is told of each text delta of the answer. */
  readonly onDelta?: (delta: string) => void;
  readonly signal?: AbortSignal;
}

/** One conversation that is held in memory. */
export interface Conversation {
  /** Asks once more, behind what has been said. */
  call(script: string): Promise<string>;
}

/** A way to ask a model: by hand, over a vendor's SDK or by a framework. All do the same visible work. */
export interface Adapter {
  /**
   * Asks the question of a model that plays the script, runs its tools to the end, tells of each text delta of the answer, and
   * gives the whole answer.
   */
  call(script: string, options?: CallOptions): Promise<string>;
  /** The same as deltas that a consumer pulls. Absent where there is no such form. */
  pull?(script: string, options?: Pick<CallOptions, 'signal'>): AsyncIterable<string>;
  /** Holds one conversation for as long as what it returns is held. Absent where there is no such thing. */
  session?(id: string): Conversation;
  /** Ends what it has started, for tests: a measured process just ends. */
  close?(): void;
}

/** The one export of an adapter's module. */
export type Open = (setup: Setup) => Adapter | Promise<Adapter>;
