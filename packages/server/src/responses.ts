import { type AgentEvent, type Demand, toReadableStream } from '@millrace/core';
import { checkOptions, isFunction } from '@millrace/core/adapter';
import { defer, map, type Observable, type OperatorFunction } from 'rxjs';
import { type AgUiOptions, toAgUi } from './ag-ui/to-ag-ui.js';
import { toUiMessageStream, type UiMessageStreamOptions } from './ai-sdk/to-ui-message-stream.js';
import { agUiHeaders, uiMessageStreamHeaders } from './headers.js';
import { toServerSentEvents } from './to-server-sent-events.js';

/** Makes the events of a call, which read no faster than this demand wants: `(demand) => agent.stream$(input, { demand })`. */
export type OpenCall = (demand: Demand) => Observable<AgentEvent>;

/**
 * Makes the web-standard response that is a call as an AI SDK UI message stream. The call begins when the body is read, goes
 * no faster than its reader, and ends at once when the reader leaves. An error of the call, and one that `open` throws, ends the
 * stream as its protocol says, and goes to `onError`.
 */
export const uiMessageStreamResponse = (
  open: OpenCall,
  options: UiMessageStreamOptions = {},
): Response =>
  response(open, uiMessageStreamHeaders, toUiMessageStream(options), { last: '[DONE]' });

/** As `uiMessageStreamResponse`, of AG-UI events. */
export const agUiResponse = (open: OpenCall, options: AgUiOptions = {}): Response =>
  response(open, agUiHeaders, toAgUi(options));

const response = (
  open: OpenCall,
  headers: Readonly<Record<string, string>>,
  toProtocol: OperatorFunction<AgentEvent, object>,
  end: Parameters<typeof toServerSentEvents>[0] = {},
): Response => {
  checkOptions('A response', { open }, { open: isFunction }, ['open']);
  const toText = toServerSentEvents(end);
  const encoder = new TextEncoder();
  const bytes = toReadableStream((demand) =>
    defer(() => open(demand)).pipe(
      toProtocol,
      toText,
      map((text) => encoder.encode(text)),
    ),
  );
  return new Response(bytes, { headers });
};
