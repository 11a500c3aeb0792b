import { MillraceError } from '@millrace/core';

const refusal = (message: string, status: number): MillraceError =>
  new MillraceError('invalidResume', message, { userMessage: message, status });

/** No key of the desk has signed it: whether it is unknown, cut or changed is not said. */
export const notValid = (): MillraceError => refusal('This approval is not valid.', 401);

/** It has been used. */
export const repeated = (): MillraceError => refusal('This has been decided already.', 409);

/** What would run is not what was asked for any more. */
export const changed = (): MillraceError =>
  refusal('What was to be decided has changed since it was asked.', 409);

/** It has expired. */
export const late = (): MillraceError => refusal('The time to decide is over.', 410);

/** The call has ended or has been left, or it waits elsewhere. */
export const gone = (): MillraceError => refusal('Nobody waits for this decision.', 410);

/** The tool would not take the input that was put in the place of the model's. */
export const unfit = (problems: readonly string[]): MillraceError => {
  const message = `The input is not valid: ${problems.join('; ')}`;
  return new MillraceError('invalidRequest', message, { userMessage: message, status: 422 });
};
