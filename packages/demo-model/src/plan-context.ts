import type { Observation } from './read-conversation.js';
import type { Toolbox, ToolReading } from './read-tools.js';
import type { MissingStep } from './step.js';

/** What the conversation gives to a plan. */
export interface PlanContext {
  readonly toolbox: Toolbox;
  /** Results of this turn, by `callKey`. */
  readonly answers: ReadonlyMap<string, Observation>;
  /** Tools that the turn before used, the last one first. */
  readonly earlierTools: readonly ToolReading[];
  /** The value that the turn before ended with. */
  readonly earlierValue: string | undefined;
  /** What the turn before had to ask for. */
  readonly asked: MissingStep | undefined;
}
