import { textAt } from '@millrace/wire';

/**
 * Maps Groq's error `tool_use_failed` to a finish reason: the model wrote a tool call that cannot be parsed. Returns
 * `undefined` for any other error.
 */
export const malformedReason = (error: unknown): string | undefined => {
  if (textAt(error, 'code') !== 'tool_use_failed') return undefined;
  const written = textAt(error, 'failed_generation').trim();
  return `malformed_function_call${written === '' ? '' : `: ${written}`}`;
};
