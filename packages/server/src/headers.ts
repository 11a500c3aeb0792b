const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
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
