import { at, textAt } from '@millrace/wire';

/**
 * Makes an answer of the error by which Groq says that its model wrote a tool call that cannot be read
 * (`tool_use_failed`), so that the model is told of it. Throws every other error again.
 */
export const malformedCall = (thrown: unknown): Response => {
  if (textAt(thrown, 'code') !== 'tool_use_failed') throw thrown;
  const written = textAt(thrown, 'error', 'failed_generation').trim();
  const reason = `malformed_function_call${written === '' ? '' : `: ${written}`}`;
  const headers = new Headers({ 'content-type': 'application/json' });
  const requestId = at(thrown, 'requestID');
  if (typeof requestId === 'string') headers.set('x-request-id', requestId);
  const choices = [{ index: 0, message: { role: 'assistant' }, finish_reason: reason }];
  return new Response(JSON.stringify({ choices }), { headers });
};
