import { MillraceError } from 'millrace';

/** The error for a malformed request of the page. Its message must not quote the request. */
export const badRequest = (problem: string, status = 400): MillraceError => {
  const message = `The request is not valid: ${problem}.`;
  return new MillraceError('invalidRequest', message, { status, userMessage: message });
};
