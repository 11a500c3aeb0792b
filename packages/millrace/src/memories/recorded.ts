import { cell } from '../step.js';

/** The steps of a call that its journal has. */
export interface Recorded {
  readonly isWritten: (stepId: string) => boolean;
  /** Whether a step may have been recorded. */
  readonly mayBeWritten: (stepId: string) => boolean;
  /** Whether the call has ended: nothing of it is run again. */
  readonly hasEnded: boolean;
}

/** Set by the journal of a call; empty without one. */
export const recorded = cell('call', (): { by?: Recorded } => ({}));
