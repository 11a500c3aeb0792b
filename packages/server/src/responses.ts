import type { AgentEvent, Demand } from 'millrace';
import { checkOptions, isFunction } from 'millrace/values';
import { defer, type Observable, type OperatorFunction } from 'rxjs';
import { type AgUiOptions, toAgUi } from './ag-ui/to-ag-ui.js';
import { toUiMessageStream, type UiMessageStreamOptions } from './ai-sdk/to-ui-message-stream.js';
import { toBody, toServerSentEvents } from './to-server-sent-events.js';

const eventStream = {
  'content-type': 'text/event-stream',
  // Compression in a middleware or proxy would delay the stream.
  'cache-control': 'no-cache, no-transform',
  // Proxies that buffer responses would delay the stream.
  'x-accel-buffering': 'no',
} as const;

/** The headers of an AI SDK UI message stream response. */
export const uiMessageStreamHeaders: Readonly<Record<string, string>> = Object.freeze({
  ...eventStream,
  'x-vercel-ai-ui-message-stream': 'v1',
});

/** The headers of an AG-UI event stream response. */
export const agUiHeaders: Readonly<Record<string, string>> = Object.freeze({ ...eventStream });

/** Starts a call whose events respect the demand: `(demand) => agent.stream$(input, { demand })`. */
export type OpenCall = (demand: Demand) => Observable<AgentEvent>;

/**
 * Creates a `Response` with a call as an AI SDK UI message stream. The call starts when the body is read, pauses while
 * the client is slow, and is unsubscribed immediately when the client disconnects. Errors of the call or of `open` end
 * the stream as the protocol requires, and are passed to `onError`.
 */
export const uiMessageStreamResponse = (
  open: OpenCall,
  options: UiMessageStreamOptions = {},
): Response =>
  response(open, uiMessageStreamHeaders, toUiMessageStream(options), { last: '[DONE]' });

/** As `uiMessageStreamResponse`, with AG-UI events. */
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
  const bytes = toBody((demand) => defer(() => open(demand)).pipe(toProtocol, toText));
  return new Response(bytes, { headers });
};
