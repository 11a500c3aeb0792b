/** What calls are known by beside their ids. A feature declares its own labels by merging into it. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface CallLabels {}

/** Who and where a call is. */
export interface CallInfo extends CallLabels {
  /** The outermost call: the same for a call and all sub-agents below it. */
  readonly rootId: string;
  readonly callId: string;
  /** The call whose tool made this one. */
  readonly parentId?: string;
  /** The names of the agents, from the outermost to this one. */
  readonly agent: readonly string[];
  /** What the caller gave with the call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the call says is what the call above it says: its text is a part of the root's answer. */
  readonly speaks?: true;
}
