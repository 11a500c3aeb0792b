import { MillraceError } from '@millrace/core';
import { plainError } from './plain-error.js';
import type { Redactor } from './redactor.js';

/**
 * Makes the error that may leave the package: the same without secrets, and with what the vendor calls the request,
 * where the error does not know it.
 */
export const cleanError = (
  error: MillraceError,
  { answer, error: clean }: Redactor,
  request?: string,
): MillraceError => {
  const { code, message, retryable, userMessage, retryAfterMs, status, partial } = error;
  const { requestId = request } = error;
  const cause = plainError(error.cause, clean);
  return new MillraceError(code, clean(message), {
    retryable,
    userMessage: clean(userMessage),
    ...(cause === undefined ? {} : { cause }),
    ...(partial === undefined ? {} : { partial: answer(partial) }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(status === undefined ? {} : { status }),
    ...(requestId === undefined ? {} : { requestId: clean(requestId) }),
  });
};
