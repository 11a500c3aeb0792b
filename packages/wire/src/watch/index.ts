import type { ModelContext } from 'millrace';
import { isRecord, parsedJson, withoutSecrets } from 'millrace/values';
import {
  type Receiver,
  type Transfer,
  type TransferInterceptor,
  transferInterceptor,
  type WireRequest,
} from '../exchange.js';
import { createUtf8 } from '../utf8.js';
import { cleanEvents } from './clean-events.js';
import { mostRead, startOf } from './start-of.js';

/** A request to a provider as it is sent, and its response. Keys of the model, and secrets of known forms, are replaced by `[redacted]`. */
export interface WatchedExchange {
  /** When it was sent, by the scheduler of the call, in milliseconds since the epoch. */
  readonly at: number;
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
  /** When it ended, or was left. */
  readonly at: number;
  /** Absent if the connection failed before. */
  readonly status?: number;
  /** The start of what arrived of the body, up to a million characters. */
  readonly body: string;
  /** How many characters of the body are left out. */
  readonly omitted: number;
}

/**
 * Returns the context of a request to a model with a watcher of what this package sends for it, in all attempts and
 * redirects. It is called when a request is sent, and again when its response has ended: `index` counts the requests from 0.
 * What it throws is ignored. A watcher that the context already has is called too. Models that do not send by this package
 * are not watched.
 */
export const watchExchanges = (
  context: ModelContext,
  watch: (exchange: WatchedExchange, index: number) => void,
): ModelContext => {
  const given: ModelContext & { readonly [transferInterceptor]?: TransferInterceptor } = context;
  const outer = given[transferInterceptor];
  let count = 0;
  const intercept: TransferInterceptor = (request, receiver, create, known) => {
    const index = count;
    count += 1;
    const note = (exchange: WatchedExchange): void => {
      try {
        watch(exchange, index);
      } catch {
        // A watcher does not fail the request.
      }
    };
    const clean: Clean = (text) => withoutSecrets(known(text));
    const send: typeof create =
      outer === undefined ? create : (inner) => outer(request, inner, create, known);
    const now = () => context.scheduler.now();
    return watchedTransfer(watchedRequest(request, clean), receiver, send, { note, clean, now });
  };
  return { ...context, ...{ [transferInterceptor]: intercept } };
};

type Clean = (text: string) => string;

type Sent = Omit<WatchedExchange, 'at'>;

const watchedRequest = ({ url, headers, body }: WireRequest, clean: Clean): Sent => ({
  url: clean(url),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, cleanHeader(name, clean(value))]),
  ),
  ...startOf({ text: body, length: body.length, isWhole: true }, (text) => ({
    text: clean(text),
    omitted: 0,
  })),
});

/** The value of a header without a secret that only its name gives away. */
const cleanHeader = (name: string, value: string): string => {
  const cleaned = parsedJson(withoutSecrets(JSON.stringify({ [name]: value })));
  const [shown] = isRecord(cleaned) ? Object.values(cleaned) : [];
  return typeof shown === 'string' ? shown : '[redacted]';
};

interface Watching {
  readonly note: (exchange: WatchedExchange) => void;
  readonly clean: Clean;
  readonly now: () => number;
}

/** Creates a transfer, and notes its request when it starts, and its response when that has ended or is left. */
const watchedTransfer = (
  sent: Sent,
  receiver: Receiver,
  create: (receiver: Receiver) => Transfer,
  { note, clean, now }: Watching,
): Transfer => {
  const response = createResponse(clean);
  let isOver = false;
  let at = now();
  const end = (isWhole: boolean): void => {
    if (isOver) return;
    isOver = true;
    note({ at, ...sent, response: { at: now(), ...response.kept(isWhole) } });
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
      end(true);
      receiver.end();
    },
    fail: (thrown) => {
      end(false);
      receiver.fail(thrown);
    },
  });
  return {
    start: () => {
      at = now();
      note({ at, ...sent });
      transfer.start();
    },
    resume: () => {
      transfer.resume();
    },
    abort: () => {
      end(false);
      transfer.abort();
    },
  };
};

const createResponse = (clean: Clean) => {
  const utf8 = createUtf8();
  const pieces: string[] = [];
  let status: number | undefined;
  let length = 0;
  const add = (text: string): void => {
    if (length < mostRead) pieces.push(text);
    length += text.length;
  };
  return {
    begin: (given: number): void => {
      status = given;
    },
    add: (bytes: Uint8Array): void => {
      add(utf8.push(bytes));
    },
    kept: (isWhole: boolean): Omit<WatchedResponse, 'at'> => {
      add(utf8.end());
      return {
        ...(status !== undefined && { status }),
        ...startOf({ text: pieces.join(''), length, isWhole }, (text) =>
          cleanEvents(text, clean, isWhole && text.length === length),
        ),
      };
    },
  };
};
