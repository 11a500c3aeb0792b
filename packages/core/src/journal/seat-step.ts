import { hasFields, isOptional, isString } from '../shape.js';
import type { StepForm } from '../step.js';

/** What has become of a call that waited for its place in a session. */
export interface SeatRecord {
  /** It got the place, a later call had made it void, or it was interrupted while it waited, with a message. */
  readonly as: 'seated' | 'superseded' | 'interrupted';
  readonly message?: string;
}

/** The name of the step. Only of a call that was not simply seated there is one. */
export const seatStep = 'seat';

export const isSeatRecord = (written: unknown): written is SeatRecord =>
  hasFields(written, {
    as: (as) => as === 'seated' || as === 'superseded' || as === 'interrupted',
    message: isOptional(isString),
  });

export const seatForm: StepForm<SeatRecord> = { isWritten: isSeatRecord };
