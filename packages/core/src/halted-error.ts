import { MillraceError } from './errors.js';
import { type AssistantMessage, textOf } from './message.js';

/** The error of a call whose messages a transform would not let end. */
export const haltedError = (message: AssistantMessage, why: string): MillraceError =>
  new MillraceError('guardRejected', `The answer was stopped while it was written: ${why}`, {
    partial: textOf(message),
  });
