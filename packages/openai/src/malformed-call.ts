import { at, textAt } from '@millrace/wire';

/**
 * Maps Groq's error `tool_use_failed` to a finish reason: the model wrote a tool call that cannot be parsed. Returns
 * `undefined` for any other error.
 */
export const malformedReason = (error: unknown): string | undefined => {
  if (textAt(error, 'code') !== 'tool_use_failed') return undefined;
  const written = textAt(error, 'failed_generation').trim();
  return `malformed_function_call${written === '' ? '' : `: ${written}`}`;
};

/** Converts such an error of the SDK to an answer, so that the model gets the reason. Rethrows any other error. */
export const malformedCall = (thrown: unknown): Response => {
  const reason = malformedReason(at(thrown, 'error'));
  if (reason === undefined) throw thrown;
  const headers = new Headers({ 'content-type': 'application/json' });
  const requestId = at(thrown, 'requestID');
  if (typeof requestId === 'string') headers.set('x-request-id', requestId);
  const choices = [{ index: 0, message: { role: 'assistant' }, finish_reason: reason }];
  return new Response(JSON.stringify({ choices }), { headers });
};
