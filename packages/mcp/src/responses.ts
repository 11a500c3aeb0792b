import { isRecord, parsedJson } from 'millrace/values';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import type { MessageReader } from './message-reader.js';

/** The request of a response, and the related state of its connection. */
export interface Exchange {
  /** The message that was sent, if any. */
  readonly request: unknown;
  /** The event after which a broken stream is continued. */
  readonly lastEvent: string | undefined;
  /** Whether another stream is open on which the server may answer. */
  readonly hasStream: boolean;
}

export interface ResponseReader {
  /** Passes the messages of a response to the reader before the SDK reads them. */
  read(response: Response, exchange: Exchange): Response;
  /** Whether a stream that is continued after an event still lacks a response. */
  isAwaited(lastEvent: string | undefined): boolean;
}

/** The maximum number of streams that can be continued, since a server may send any number of event ids. */
const mostStreams = 1_000;

/**
 * Reads responses tolerantly. Answers a request with an error if its response ends without a result, for which the SDK
 * would wait forever.
 */
export const createResponseReader = (reader: MessageReader): ResponseReader => {
  /** The requests whose streams can be continued, by their last event. */
  const awaited = new Map<string, unknown>();
  const read = (response: Response, { request, lastEvent, hasStream }: Exchange): Response => {
    reader.sent(request);
    const id = lastEvent === undefined ? idOf(request) : awaited.get(lastEvent);
    const { status, headers, body } = response;
    if (isRefusal(status) && lastEvent !== undefined && id !== undefined) {
      awaited.delete(lastEvent);
      return eventStream(unanswered(id));
    }
    if (id !== undefined && lastEvent === undefined && status === 202 && !hasStream) {
      return as('application/json', JSON.stringify(unanswered(id)));
    }
    if (body === null || !response.ok || status === 202) return response;
    const type = mediaTypeOf(headers);
    if (type === 'text/event-stream') {
      return as(type, eventsRead(ended(body), tracked(reader, id, awaited, lastEvent)), response);
    }
    return id === undefined
      ? response
      : as('application/json', jsonRead(body, answering(reader, id), type), response);
  };
  return {
    read,
    isAwaited: (lastEvent) => lastEvent !== undefined && awaited.has(lastEvent),
  };
};

const isRefusal = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);

const idOf = (request: unknown): unknown =>
  isRecord(request) && 'method' in request ? (request['id'] ?? undefined) : undefined;

export const mediaTypeOf = (headers: Headers): string =>
  (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

const unanswered = (id: unknown): object => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32_000, message: 'the response ended without a result.' },
});

const eventStream = (message: object): Response =>
  as('text/event-stream', `data: ${JSON.stringify(message)}\n\n`);

const as = (
  type: string,
  body: ReadableStream<Uint8Array> | string,
  { status, statusText, headers }: Pick<Response, 'headers' | 'status' | 'statusText'> = {
    status: 200,
    statusText: 'OK',
    headers: new Headers(),
  },
): Response => {
  const own = new Headers(headers);
  own.delete('content-length');
  own.set('content-type', type);
  return new Response(body, { status, statusText, headers: own });
};

/** Ends a stream that breaks, so the messages before that are still read. */
const ended = (body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
  const source = body.getReader();
  return new ReadableStream({
    pull: (controller) =>
      source.read().then(
        ({ done, value }) => (done ? controller.close() : controller.enqueue(value)),
        () => controller.close(),
      ),
    cancel: (reason) => source.cancel(reason),
  });
};

// ---------------------------------------------------------------- messages

interface Reading {
  /** Returns the message in a form that the SDK accepts; undefined if it is unusable. */
  readonly message: (message: unknown) => unknown;
  readonly event?: (id: string) => void;
  /** The message that is missing at the end. */
  readonly last: () => object | undefined;
}

const answering = (reader: MessageReader, id: unknown): Reading => {
  let isAnswered = id === undefined;
  return {
    message: (message) => {
      // If the server could not read the request, its error has no id, and the SDK would wait forever.
      const isLoose =
        isRecord(message) && (message['id'] ?? undefined) === undefined && !('method' in message);
      const own = isLoose && id !== undefined ? { ...message, id } : message;
      isAnswered ||= isRecord(own) && !('method' in own) && String(own['id']) === String(id);
      return reader.received(own, typeof id === 'number' ? String(id) : undefined);
    },
    last: () => (isAnswered ? undefined : unanswered(id)),
  };
};

/** Reads the messages of a stream. One whose events have ids is continued after the last of them. */
const tracked = (
  reader: MessageReader,
  id: unknown,
  awaited: Map<string, unknown>,
  lastEvent: string | undefined,
): Reading => {
  const { message, last } = answering(reader, id);
  let latest = lastEvent;
  return {
    message,
    event: (event) => {
      if (id === undefined) return;
      if (latest !== undefined) awaited.delete(latest);
      if (last() !== undefined && awaited.size < mostStreams) awaited.set(event, id);
      latest = event;
    },
    last: () => {
      const missing = last();
      if (missing === undefined && latest !== undefined) awaited.delete(latest);
      return latest === undefined ? missing : undefined;
    },
  };
};

const jsonRead = (
  body: ReadableStream<Uint8Array>,
  { message, last }: Reading,
  type: string,
): ReadableStream<Uint8Array> => {
  const parts: string[] = [];
  return body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(
      new TransformStream<string, string>({
        transform: (part) => void parts.push(part),
        flush: (controller) => controller.enqueue(messagesIn(parts.join(''), type, message, last)),
      }),
    )
    .pipeThrough(new TextEncoderStream());
};

/** The messages of a body, and an error if its request is not answered. Leaves JSON that is too deep to the SDK. */
const messagesIn = (
  text: string,
  type: string,
  message: Reading['message'],
  last: Reading['last'],
): string => {
  const body = parsedJson(text);
  if (!isRecord(body) && !Array.isArray(body)) throw notJson(type, text);
  try {
    const all = (Array.isArray(body) ? body : [body]).map(message);
    const missing = last();
    if (missing !== undefined) all.push(message(missing));
    return JSON.stringify(all.filter((it) => it !== undefined));
  } catch {
    return text;
  }
};

const notJson = (type: string, text: string): Error =>
  new Error(
    text.trim() === ''
      ? 'its response is empty.'
      : `its response is not JSON${/^[\w.+/-]{1,60}$/.test(type) ? ` (${type})` : ''}.`,
  );

/** Leaves invalid JSON, and JSON that is too deep, to the SDK. */
const rewritten = (text: string, message: Reading['message']): string | undefined => {
  try {
    const data: unknown = JSON.parse(text);
    const all = Array.isArray(data) ? data.map(message) : message(data);
    const known = Array.isArray(all) ? all.filter((it) => it !== undefined) : all;
    return known === undefined ? undefined : JSON.stringify(known);
  } catch {
    return text;
  }
};

/** The events of a stream, unchanged except for the messages that the reader corrected. */
const eventsRead = (
  body: ReadableStream<Uint8Array>,
  { message, event: seen, last }: Reading,
): ReadableStream<Uint8Array> => {
  let retryMs: number | undefined;
  const onRetry = (ms: number): void => void (retryMs = ms);
  return body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(
      // The last event may lack its empty line.
      new TransformStream<string, string>({ flush: (controller) => controller.enqueue('\n\n') }),
    )
    .pipeThrough(new EventSourceParserStream({ onRetry }))
    .pipeThrough(
      new TransformStream<EventSourceMessage, string>({
        transform: ({ id, event, data }, controller) => {
          const isMessage = data !== '' && (event === undefined || event === 'message');
          const text = isMessage ? rewritten(data, message) : data;
          if (id !== undefined) seen?.(id);
          const lines = [
            ...(retryMs === undefined ? [] : [`retry: ${retryMs}`]),
            ...(id === undefined ? [] : [`id: ${id}`]),
            ...(event === undefined ? [] : [`event: ${event}`]),
            ...(text ?? '').split('\n').map((line) => `data: ${line}`),
          ];
          retryMs = undefined;
          controller.enqueue(`${lines.join('\n')}\n\n`);
        },
        flush: (controller) => {
          if (retryMs !== undefined) controller.enqueue(`retry: ${retryMs}\n\n`);
          const missing = last();
          if (missing !== undefined) {
            controller.enqueue(`data: ${JSON.stringify(message(missing))}\n\n`);
          }
        },
      }),
    )
    .pipeThrough(new TextEncoderStream());
};

// ---------------------------------------------------------------- limits

/** Ends a body when one message of it is too long. Messages of an event stream end with an empty line, others with the body. */
export const bounded = (response: Response, maxBytes: number, exceeded: () => void): Response => {
  if (response.body === null) return response;
  const count =
    mediaTypeOf(response.headers) === 'text/event-stream' ? bytesOfEvent() : bytesOfBody();
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (count(chunk) <= maxBytes) {
        controller.enqueue(chunk);
        return;
      }
      exceeded();
      controller.error(new TypeError('The message is too long.'));
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
};

const bytesOfBody = (): ((chunk: Uint8Array) => number) => {
  let bytes = 0;
  return (chunk) => (bytes += chunk.length);
};

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** The bytes of the longest event that a chunk has, or adds to. Lines end with LF, CR or both. */
const bytesOfEvent = (): ((chunk: Uint8Array) => number) => {
  let bytes = 0;
  let ofLine = 0;
  let isAfterReturn = false;
  return (chunk) => {
    let most = 0;
    for (const byte of chunk) {
      bytes += 1;
      const isSecond = byte === lineFeed && isAfterReturn;
      isAfterReturn = byte === carriageReturn;
      if (isSecond) continue;
      if (byte !== lineFeed && byte !== carriageReturn) ofLine += 1;
      else {
        if (ofLine === 0) bytes = 0;
        ofLine = 0;
      }
      if (bytes > most) most = bytes;
    }
    return most;
  };
};
