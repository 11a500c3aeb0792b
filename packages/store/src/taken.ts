import { MillraceError } from '@millrace/core';

/** The error of who wants to write down a call that another one writes, or who has lost it to another one. */
export const taken = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId.slice(0, 100)}' is open elsewhere: one call has one writer. Follow it with attach$(), or wait until it has ended.`,
    { retryable: true },
  );
