import { isRecord } from 'millrace/values';
import { asapScheduler, type Subscription } from 'rxjs';
import { type Consumer, type Decompressor, decompressorFor } from './decompress.js';
import type { Receiver, ResponseHead, Transfer, WireRequest } from './exchange.js';
import { memoizeByObject, memoizeLast } from './memoize.js';

/** The part of an undici dispatcher that Node's `fetch` uses. */
interface Dispatcher {
  dispatch(options: object, handler: object): unknown;
}

/**
 * Creates the transfer of a request over the dispatcher of Node's `fetch`, which programs replace for a proxy or a mock.
 * Returns `undefined` on another platform, and if the global `fetch` was replaced: programs do that for mocks, caches and
 * tracing, at any time.
 */
export const nodeTransfer = (request: WireRequest, receiver: Receiver): Transfer | undefined => {
  if (typeof globalThis.fetch !== 'function' || !isOfNode(globalThis.fetch)) return undefined;
  // Node registers it when its `fetch` is first used, and this class belongs to it.
  if (dispatcherAt(1) === undefined) Reflect.get(globalThis, 'Response');
  // This one takes the handlers of undici 6, also in later versions.
  const dispatcher = dispatcherAt(1);
  return dispatcher && dispatcherTransfer(dispatcher, request, receiver);
};

const known = new WeakMap<object, boolean>();

/** Whether a `fetch` is Node's own, by its source. */
const isOfNode = (fetch: typeof globalThis.fetch): boolean => {
  const before = known.get(fetch);
  if (before !== undefined) return before;
  const source = Function.prototype.toString.call(fetch);
  const found = source.includes('internal/deps/undici');
  known.set(fetch, found);
  return found;
};

const dispatcherAt = (version: 1 | 2): Dispatcher | undefined => {
  const found: unknown = Reflect.get(globalThis, keys[version]);
  return isDispatcher(found) ? found : undefined;
};

const keys = {
  1: Symbol.for('undici.globalDispatcher.1'),
  2: Symbol.for('undici.globalDispatcher.2'),
};

const isDispatcher = (value: unknown): value is Dispatcher =>
  isRecord(value) && typeof value['dispatch'] === 'function';

/**
 * Removes the time limits of Node's `fetch`, which fails after 5 minutes without headers or body data: the model has
 * its own timeouts. Requests still go through the current dispatcher, with its connections, proxy or mock, and explicit
 * limits of an `Agent` stay in force. Mutates `init`. A `fetch` that is not based on undici ignores it.
 *
 * The field is not enumerable, so a `fetch` that copies `init` to add its own dispatcher keeps that one.
 */
export const withoutLimits = (init: RequestInit): RequestInit => {
  const [older, newer] = [dispatcherAt(1), dispatcherAt(2)];
  const current = newer ?? older;
  if (current === undefined) return init;
  const dispatch = (options: object, handler: object): unknown => {
    // Later versions of undici have another handler.
    const chosen = ('onRequestStart' in handler ? newer : older) ?? current;
    const limits = limitsOf(optionsOf(chosen) === undefined ? current : chosen);
    return chosen.dispatch({ ...options, ...limits }, handler);
  };
  const value: unknown = Object.create(current, { dispatch: { value: dispatch } });
  return Object.defineProperty(init, 'dispatcher', { value });
};

interface Limits {
  readonly headersTimeout: unknown;
  readonly bodyTimeout: unknown;
}

const limitsOf = memoizeByObject((dispatcher: Dispatcher): Limits => {
  const { headersTimeout = 0, bodyTimeout = 0 } = optionsOf(dispatcher) ?? {};
  return { headersTimeout, bodyTimeout };
});

/** The options of an `Agent`, which undici keeps under a private symbol. */
const optionsOf = (dispatcher: object): Readonly<Record<string, unknown>> | undefined => {
  const key = Object.getOwnPropertySymbols(dispatcher).find(
    ({ description }) => description === 'options',
  );
  const options: unknown = key === undefined ? undefined : Reflect.get(dispatcher, key);
  return isRecord(options) ? options : undefined;
};

/** The default headers of `fetch`, but without compression: that delays a stream. */
const defaultHeaders: WireRequest['headers'] = {
  accept: '*/*',
  'accept-encoding': 'identity',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
};

const allHeaders = memoizeByObject((headers: WireRequest['headers']) => ({
  ...defaultHeaders,
  ...headers,
}));

const addressOf = memoizeLast((url) => {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
});

/**
 * Sends a request over a dispatcher of undici. The handler is that of
 * https://github.com/nodejs/undici/blob/v6.24.1/docs/docs/api/Dispatcher.md.
 */
const dispatcherTransfer = (
  dispatcher: Dispatcher,
  { url, headers, body: content }: WireRequest,
  receiver: Receiver,
): Transfer => {
  let isAborted = false;
  let stop: ((reason: Error) => void) | undefined;
  const pause = createPause();
  const abort = (): void => {
    isAborted = true;
    body.destroy();
    stop?.(aborted);
  };
  const body = createBody(inContext(receiver), pause.release, abort);
  const batch = createBatch((bytes) => {
    try {
      if (!isAborted && !body.write(bytes)) pause.wait(bytes.length);
    } catch (thrown) {
      // No one else would catch it in a task of its own.
      body.fail(thrown);
      abort();
    }
  });
  const handler = {
    onConnect: (abortRequest: (reason: Error) => void): void => {
      if (isAborted) abortRequest(aborted);
      else stop = abortRequest;
    },
    onHeaders: (status: number, raw: readonly RawHeader[], resume: () => void): boolean => {
      // An interim response precedes the real one.
      if (status < 200 || isAborted) return true;
      pause.endsWith(resume);
      body.begin({ status, headers: { get: (name: string) => rawHeader(raw, name) } });
      return true;
    },
    onData: (bytes: Uint8Array): boolean => {
      batch.add(bytes);
      return isAborted || !pause.isHeld();
    },
    onComplete: (): void => {
      batch.flush();
      body.end();
    },
    onError: (error: unknown): void => {
      batch.flush();
      body.fail(error);
    },
    onUpgrade: (): void => body.fail(new Error('The server changed the protocol.')),
  };
  return {
    start: () => {
      try {
        const target = { method: 'POST', ...addressOf(url), headers: allHeaders(headers) };
        dispatcher.dispatch({ ...target, body: content, ...limitsOf(dispatcher) }, handler);
      } catch (thrown) {
        body.fail(thrown);
      }
    },
    resume: body.resume,
    abort,
  };
};

/** A receiver in the context of the request: undici calls back in that in which the connection was opened. */
const inContext = (receiver: Receiver): Receiver => {
  const scope = new (process.getBuiltinModule('node:async_hooks').AsyncResource)('MillraceRequest');
  return {
    head: (head) => scope.runInAsyncScope(() => receiver.head(head)),
    bytes: (bytes) => scope.runInAsyncScope(() => receiver.bytes(bytes)),
    end: () => scope.runInAsyncScope(() => receiver.end()),
    fail: (error) => scope.runInAsyncScope(() => receiver.fail(error)),
  };
};

/** Passes a response to its receiver, decompressed. */
const createBody = (receiver: Receiver, release: () => void, abort: () => void) => {
  let decompressor: Decompressor | undefined;
  let hasHead = false;
  let isComplete = false;
  let isDestroyed = false;
  const consumer: Consumer = {
    bytes: (bytes) => receiver.bytes(bytes),
    end: () => {
      receiver.end();
      // Data after the end of the compressed data would be read without limit.
      if (!isComplete) abort();
    },
    fail: (cause) => {
      if (isDestroyed) return;
      decompressor?.destroy();
      // As with `fetch`, whose errors others have learned to read.
      receiver.fail(new TypeError(hasHead ? 'terminated' : 'fetch failed', { cause }));
    },
    drained: release,
  };
  return {
    begin: (head: ResponseHead): void => {
      hasHead = true;
      decompressor = decompressorFor(head.headers.get('content-encoding'), consumer);
      receiver.head(head);
    },
    /** Returns whether it takes more now. */
    write: (bytes: Uint8Array): boolean => (decompressor?.write ?? consumer.bytes)(bytes),
    end: (): void => {
      isComplete = true;
      if (!isDestroyed) (decompressor?.end ?? consumer.end)();
    },
    fail: consumer.fail,
    resume: (): void => (decompressor?.resume ?? release)(),
    destroy: (): void => {
      isDestroyed = true;
      decompressor?.destroy();
    },
  };
};

/** Gathers what one read of the socket brings: undici passes each part of it on its own, and many hold one event. */
const createBatch = (write: (bytes: Uint8Array) => void) => {
  let parts: Uint8Array[] = [];
  let size = 0;
  let pending: Subscription | undefined;
  const flush = (): void => {
    const [first = Buffer.of()] = parts;
    const all = parts.length > 1 ? Buffer.concat(parts, size) : first;
    pending = undefined;
    parts = [];
    size = 0;
    if (all.length > 0) write(all);
  };
  return {
    add: (bytes: Uint8Array): void => {
      parts.push(bytes);
      // A task of others that throws drops those of the scheduler that wait.
      if (pending?.closed !== false) pending = asapScheduler.schedule(flush);
      size += bytes.length;
      if (size >= readSize) flush();
    },
    flush,
  };
};

/** Lets bytes arrive that their consumer does not want yet, and then pauses the connection. */
const createPause = () => {
  let proceed: (() => void) | undefined;
  /** Since the last pause. */
  let waiting = 0;
  let isHeld = false;
  return {
    endsWith: (resume: () => void): void => {
      proceed = resume;
    },
    wait: (bytes: number): void => {
      waiting += bytes;
      if (waiting < readSize) return;
      waiting = 0;
      isHeld = true;
    },
    /** Returns whether nothing more may arrive. */
    isHeld: (): boolean => isHeld,
    release: (): void => {
      if (!isHeld) return;
      // Proceeding may hold it again.
      isHeld = false;
      proceed?.();
    },
  };
};

/**
 * The number of bytes that Node reads from a socket. Each pause of undici lets Node read that much ahead. Therefore it is
 * only paused after as many bytes: with more pauses, Node would read ahead of a slow consumer without limit.
 */
const readSize = 65_536;

const aborted = new Error('The request was aborted.');

type RawHeader = string | Uint8Array | readonly (string | Uint8Array)[];

/** Names and values alternate. Repeated headers are joined, as in `Headers`. */
const rawHeader = (raw: readonly RawHeader[], name: string): string | null => {
  const values = raw.filter(
    (_, at) => at % 2 === 1 && latin1(raw[at - 1] ?? '').toLowerCase() === name,
  );
  return values.length === 0 ? null : values.map(latin1).join(', ');
};

const latin1 = (text: RawHeader): string => {
  if (typeof text === 'string') return text;
  return text instanceof Uint8Array
    ? Buffer.from(text).toString('latin1')
    : text.map(latin1).join(', ');
};
