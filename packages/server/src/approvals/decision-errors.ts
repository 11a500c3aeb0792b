import { MillraceError } from '@millrace/core';

const refusal = (message: string, status: number): MillraceError =>
  new MillraceError('invalidResume', message, { userMessage: message, status });

/** No key has signed the token. Does not reveal whether it is unknown, truncated or altered. */
export const invalidToken = (): MillraceError => refusal('This approval is not valid.', 401);

export const alreadyDecided = (): MillraceError =>
  refusal('This request has already been decided.', 409);

export const argumentsChanged = (): MillraceError =>
  refusal('The request has changed since it was shown for approval.', 409);

export const expired = (): MillraceError => refusal('This request has expired.', 410);

/** The call has ended or was unsubscribed, or it waits in another process. */
export const notPending = (): MillraceError => refusal('This request is no longer pending.', 410);

/** The tool rejects the input that replaces the model's. */
export const invalidInput = (problems: readonly string[]): MillraceError => {
  const message = `The input is not valid: ${problems.join('; ')}`;
  return new MillraceError('invalidRequest', message, { userMessage: message, status: 422 });
};
