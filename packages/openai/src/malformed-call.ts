import { at, textAt } from '@millrace/wire';

/**
 * The finish reason that an error of Groq stands for: `tool_use_failed` means that its model wrote a tool call that
 * cannot be parsed. Undefined for every other error.
 */
export const malformedReason = (error: unknown): string | undefined => {
  if (textAt(error, 'code') !== 'tool_use_failed') return undefined;
  const written = textAt(error, 'failed_generation').trim();
  return `malformed_function_call${written === '' ? '' : `: ${written}`}`;
};

/** Turns such an error of the SDK into an answer, so that the model gets the reason. Throws every other error again. */
export const malformedCall = (thrown: unknown): Response => {
  const reason = malformedReason(at(thrown, 'error'));
  if (reason === undefined) throw thrown;
  const headers = new Headers({ 'content-type': 'application/json' });
  const requestId = at(thrown, 'requestID');
  if (typeof requestId === 'string') headers.set('x-request-id', requestId);
  const choices = [{ index: 0, message: { role: 'assistant' }, finish_reason: reason }];
  return new Response(JSON.stringify({ choices }), { headers });
};
