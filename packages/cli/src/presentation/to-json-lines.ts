import { type AgentEvent, isMillraceError } from 'millrace';
import { withoutSecrets } from 'millrace/values';
import { map, type OperatorFunction } from 'rxjs';
import { printableJson } from './printable.js';

/** Renders each event as one line of JSON. Errors keep code, messages and details, but neither keys nor stack nor cause. */
export const toJsonLines: OperatorFunction<AgentEvent, string> = map(
  (event) => `${printableJson(toJson(event))}\n`,
);

const toJson = (event: AgentEvent): string => {
  try {
    return JSON.stringify(event, withPlainErrors);
  } catch (cause) {
    // A tool may emit or attach values that JSON cannot represent.
    const { type, rootId, callId, agent, iteration, seq, at } = event;
    const omitted = cause instanceof Error ? cause.message : 'not JSON';
    return JSON.stringify({ type, rootId, callId, agent, iteration, seq, at, omitted });
  }
};

/** A replacer for `JSON.stringify`, which knows no errors and no bigints. */
export const withPlainErrors = (_key: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return String(value);
  if (!(value instanceof Error)) return value;
  const message = withoutSecrets(value.message);
  if (!isMillraceError(value)) return { name: value.name, message };
  const { code, userMessage, retryable, status, requestId, partial } = value;
  return { code, message, userMessage, retryable, status, requestId, partial };
};
