import type { Attributes } from '@opentelemetry/api';
import type { AgentEvent, ToolCallBlock } from 'millrace';
// Declares `steered` and the id of a session.
import type {} from 'millrace/sessions';
import type { Redact } from './content.js';
import { keys } from './conventions.js';

/** The attributes of the span event for an event of a call, or `undefined` if it makes none. Without content. */
export const spanEventOf = (
  event: AgentEvent,
  redact: Redact | undefined,
): Attributes | undefined => {
  switch (event.type) {
    case 'modelRetry':
      return {
        [keys.requestModel]: event.model,
        [keys.errorType]: event.error.code,
        'millrace.attempt': event.attempt,
        'millrace.attempts': event.attempts,
        'millrace.wait_ms': event.waitMs,
      };
    case 'modelFallback':
      return {
        'millrace.from': event.from,
        'millrace.to': event.to,
        [keys.errorType]: event.error.code,
      };
    case 'modelWaiting':
      return { [keys.requestModel]: event.model, 'millrace.waited_ms': event.waitedMs };
    case 'messageDiscarded':
      return { 'millrace.message.id': event.messageId };
    case 'vetoed':
      return {
        'millrace.of': event.of,
        'millrace.handler': event.name,
        ...(event.toolCallId !== undefined && { [keys.toolCallId]: event.toolCallId }),
      };
    case 'handlerError':
      return {
        'millrace.of': event.of,
        'millrace.handler': event.name,
        [keys.errorType]: event.error.code,
      };
    case 'repaired':
      return event.toolCall === undefined ? {} : toolOf(event.toolCall);
    case 'suspended':
    case 'approvalRequested':
      return toolOf(event.toolCall);
    case 'approvalDecided':
      return { ...toolOf(event.toolCall), 'millrace.approved': event.approved };
    case 'uncertain':
      return { ...toolOf(event.toolCall), 'millrace.then': event.then };
    case 'queued':
      return { [keys.queue]: event.why, 'millrace.ahead': event.ahead };
    case 'admitted':
      return { [keys.queue]: event.why, 'millrace.waited_ms': event.waitedMs };
    case 'steered':
      return { 'millrace.message.id': event.message.id };
    case 'warning':
      // A warning may quote an error of a tool.
      return redact === undefined ? {} : { 'millrace.message': redact(event.message) };
    default:
      return undefined;
  }
};

const toolOf = ({ name, id }: ToolCallBlock): Attributes => ({
  [keys.toolName]: name,
  [keys.toolCallId]: id,
});
