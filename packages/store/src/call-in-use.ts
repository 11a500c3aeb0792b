import { MillraceError } from '@millrace/core';

/** The error for claiming a call that another writer holds, or for writing to one that was lost to another writer. */
export const callInUse = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId.slice(0, 100)}' is running elsewhere: a call has a single writer. Follow it with attach$(), or wait until it has ended.`,
    { retryable: true },
  );
