const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  // Proxies that gather a response before they pass it on would hold the stream back.
  'x-accel-buffering': 'no',
} as const;

/** The headers of a response that is an AI SDK UI message stream. */
export const uiMessageStreamHeaders: Readonly<Record<string, string>> = Object.freeze({
  ...eventStream,
  'x-vercel-ai-ui-message-stream': 'v1',
});

/** The headers of a response that is a stream of AG-UI events. */
export const agUiHeaders: Readonly<Record<string, string>> = Object.freeze({ ...eventStream });
