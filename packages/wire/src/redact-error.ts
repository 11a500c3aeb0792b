import { MillraceError } from 'millrace';
import { plainError } from './plain-error.js';
import type { Redactor } from './redactor.js';

/** Returns a copy of an error without secrets, and with `request` as its request ID if it has no ID yet. */
export const redactError = (
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
