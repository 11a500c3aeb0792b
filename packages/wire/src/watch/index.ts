import type { ModelContext } from 'millrace';
import {
  type Receiver,
  type Transfer,
  type TransferInterceptor,
  transferInterceptor,
  type WireRequest,
} from '../exchange.js';

/** A request to a provider as it is sent, and its response as it arrives. Keys of the model are replaced by `[redacted]`. */
export interface WatchedExchange {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The start of the body, up to a million characters. */
  readonly body: string;
  /** How many characters of the body are left out. */
  readonly omitted: number;
  /** Absent until the response has ended, or was left. */
  readonly response?: WatchedResponse;
}

export interface WatchedResponse {
  /** Absent if the connection failed before. */
  readonly status?: number;
  /** The start of the body, up to a million bytes, in the pieces in which it arrived. */
  readonly pieces: readonly string[];
  /** How many bytes of the body are left out. */
  readonly omitted: number;
}

/** The characters or bytes of a body that are kept. */
const most = 1_000_000;

/**
 * Returns the context of a request to a model with a watcher of what this package sends for it, in all attempts. It is
 * called when a request is sent, and again when its response has ended: `index` counts the requests from 0. What it throws
 * is ignored. Models that do not send by this package are not watched.
 */
export const watchExchanges = (
  context: ModelContext,
  watch: (exchange: WatchedExchange, index: number) => void,
): ModelContext => {
  let count = 0;
  const intercept: TransferInterceptor = (request, receiver, create, clean) => {
    const index = count;
    count += 1;
    const note = (exchange: WatchedExchange): void => {
      try {
        watch(exchange, index);
      } catch {
        // A watcher does not fail the request.
      }
    };
    return watchedTransfer(withoutSecrets(request, clean), receiver, create, { note, clean });
  };
  return { ...context, ...{ [transferInterceptor]: intercept } };
};

type Clean = (text: string) => string;

const withoutSecrets = (
  { url, headers, body: sent }: WireRequest,
  clean: Clean,
): WatchedExchange => {
  const body = clean(sent);
  const cleaned = Object.entries(headers).map(([name, value]) => [name, clean(value)] as const);
  return {
    url: clean(url),
    headers: Object.fromEntries(cleaned),
    body: body.slice(0, most),
    omitted: Math.max(0, body.length - most),
  };
};

/** Creates a transfer, and notes its request when it starts, and its response when that has ended or is left. */
const watchedTransfer = (
  sent: WatchedExchange,
  receiver: Receiver,
  create: (receiver: Receiver) => Transfer,
  { note, clean }: { readonly note: (exchange: WatchedExchange) => void; readonly clean: Clean },
): Transfer => {
  const response = createResponse(clean);
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    note({ ...sent, response: response.kept() });
  };
  const transfer = create({
    head: (head) => {
      response.begin(head.status);
      receiver.head(head);
    },
    bytes: (bytes) => {
      response.add(bytes);
      return receiver.bytes(bytes);
    },
    end: () => {
      end();
      receiver.end();
    },
    fail: (thrown) => {
      end();
      receiver.fail(thrown);
    },
  });
  return {
    start: () => {
      note(sent);
      transfer.start();
    },
    resume: () => {
      transfer.resume();
    },
    abort: () => {
      end();
      transfer.abort();
    },
  };
};

const createResponse = (clean: Clean) => {
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let status: number | undefined;
  let size = 0;
  return {
    begin: (given: number): void => {
      status = given;
    },
    add: (bytes: Uint8Array): void => {
      const left = Math.max(0, most - size);
      size += bytes.length;
      if (left > 0) pieces.push(decoder.decode(bytes.subarray(0, left), { stream: true }));
    },
    kept: (): WatchedResponse => ({
      ...(status !== undefined && { status }),
      pieces: pieces.map(clean),
      omitted: Math.max(0, size - most),
    }),
  };
};
