import type { AgentCard } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { A2AError } from '@a2a-js/sdk/errors';
import { isMillraceError, MillraceError } from 'millrace';
import { type Complete, isRecord, untrustedText } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  finalize,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  throwError,
  timeout,
} from 'rxjs';

/** Limits for what a remote agent sends, in bytes. */
export interface A2aLimits {
  /** Maximum size of its card. Default: 100,000. */
  readonly card?: number | undefined;
  /** Maximum size of a response or of a whole stream. Default: 16,000,000. */
  readonly response?: number | undefined;
}

/** A remote agent, from the options of its tool. */
export interface Remote {
  /** The name of its tool, for errors. */
  readonly name: string;
  readonly target: string | AgentCard;
  readonly headers: Readonly<Record<string, string>>;
  /** Origins that may be asked, beside that of the target. */
  readonly origins: readonly string[];
  readonly limits: Complete<A2aLimits>;
  readonly connectMs: number;
}

/** Reads the card of a remote agent, and emits a client for it. Errors with a `MillraceError`. */
export const connected$ = (remote: Remote): Observable<Client> =>
  cardOf$(remote).pipe(
    concatMap((card) => {
      const fetchImpl = guardedFetch(remote, remote.limits.response);
      const transport = new JsonRpcTransportFactory({ fetchImpl, legacyCompat });
      return from(new ClientFactory({ transports: [transport] }).createFromAgentCard(card));
    }),
    catchError((cause: unknown) => throwError(() => remoteError(remote, cause))),
  );

const legacyCompat = { enabled: true };

const cardOf$ = (remote: Remote): Observable<AgentCard> => {
  const { target, limits, connectMs } = remote;
  if (typeof target !== 'string') return of(checkedCard(remote, target));
  return requested$((signal) => {
    const fetchCard = guardedFetch(remote, limits.card);
    const fetchImpl = (input: string | URL | Request, init?: RequestInit) =>
      fetchCard(input, { ...init, signal });
    const resolver = new DefaultAgentCardResolver({ legacyCompat, fetchImpl });
    return resolver.resolve(target, new URL(target).pathname.endsWith('.json') ? '' : undefined);
  }).pipe(
    timeout({
      first: connectMs,
      with: () =>
        throwError(() =>
          failure(remote, 'timeout', `did not send its card within ${connectMs} ms`),
        ),
    }),
    map((card) => checkedCard(remote, card)),
  );
};

/** Validates the card, which the SDK does not. */
const checkedCard = (remote: Remote, card: unknown): AgentCard => {
  const interfaces = isRecord(card) ? card['supportedInterfaces'] : undefined;
  const usable = Array.isArray(interfaces) ? interfaces.filter(isUsable) : [];
  if (!isRecord(card) || usable.length === 0) {
    throw failure(remote, 'invalidResponse', 'has no card with an interface for JSON-RPC');
  }
  for (const { url } of usable) assertOrigin(remote, url);
  const capabilities = isRecord(card['capabilities']) ? card['capabilities'] : {};
  const checked = { ...card, capabilities, supportedInterfaces: usable };
  // Only these two fields are read.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return checked as unknown as AgentCard;
};

interface Usable {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
}

const isUsable = (value: unknown): value is Usable =>
  isRecord(value) &&
  typeof value['url'] === 'string' &&
  URL.canParse(value['url']) &&
  typeof value['protocolBinding'] === 'string' &&
  value['protocolBinding'].toUpperCase() === 'JSONRPC' &&
  typeof value['protocolVersion'] === 'string' &&
  (value['tenant'] === undefined || typeof value['tenant'] === 'string');

/** Performs a request of the SDK, or reads a stream of it. Unsubscribing aborts it. */
export const requested$ = <T>(ask: (signal: AbortSignal) => ObservableInput<T>): Observable<T> =>
  defer(() => {
    const abort = new AbortController();
    return from(ask(abort.signal)).pipe(
      finalize(() => {
        abort.abort();
      }),
    );
  });

// ---------------------------------------------------------------- requests

const assertOrigin = (remote: Remote, url: string): void => {
  const { origin } = new URL(url);
  if (allowedOrigins(remote).includes(origin)) return;
  throw failure(remote, 'refused', `expects requests at ${origin}. Allow it with 'origins'`);
};

/** The origins that may be requested. A card that the application passes in is trusted. */
const allowedOrigins = ({ target, origins }: Remote): readonly string[] => [
  ...origins,
  ...(typeof target === 'string'
    ? [new URL(target).origin]
    : target.supportedInterfaces.flatMap(({ url }) =>
        URL.canParse(url) ? [new URL(url).origin] : [],
      )),
];

/** Requests only allowed origins, follows no redirects, and reads up to this number of bytes. */
const guardedFetch =
  (remote: Remote, maxBytes: number): typeof fetch =>
  (input, init = {}) =>
    Promise.resolve().then(() => {
      const url = input instanceof Request ? input.url : String(input);
      assertOrigin(remote, url);
      const headers = new Headers(remote.headers);
      new Headers(init.headers).forEach((value, name) => {
        headers.set(name, value);
      });
      return fetch(url, { ...init, headers, redirect: 'manual' }).then((response) => {
        if (response.status >= 300 && response.status < 400) {
          throw failure(remote, 'redirect', 'answered with a redirect');
        }
        const statusError = errorOfStatus(remote, response);
        if (statusError !== undefined) throw statusError;
        return bounded(remote, response, maxBytes);
      });
    });

/** Errors of the protocol come with the statuses 200, 400 and 500, and a body. */
const errorOfStatus = (remote: Remote, { status, headers }: Response): Error | undefined => {
  if (status === 401 || status === 403) {
    return failure(remote, 'auth', `answered with HTTP ${status}. Check 'headers'`);
  }
  if (status === 429) return failure(remote, 'rateLimited', 'answered with HTTP 429');
  const isJson = headers.get('content-type')?.includes('json') === true;
  if (status >= 500 && !isJson) return failure(remote, 'server', `answered with HTTP ${status}`);
  if (status === 404) return failure(remote, 'server', 'answered with HTTP 404');
  return undefined;
};

const bounded = (remote: Remote, response: Response, maxBytes: number): Response => {
  if (response.body === null) return response;
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes <= maxBytes) controller.enqueue(chunk);
      else controller.error(failure(remote, 'tooLarge', `sent more than ${maxBytes} bytes`));
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
};

// ---------------------------------------------------------------- errors

const failure = (
  { name }: Remote,
  code: MillraceError['code'],
  why: string,
  cause?: unknown,
): MillraceError => new MillraceError(code, `The agent of '${name}' ${why}.`, { cause });

/** The error for anything that the SDK throws. */
export const remoteError = (remote: Remote, cause: unknown): MillraceError => {
  // Errors of `fetch` may come from another realm.
  const fields = isRecord(cause) ? cause : {};
  const errors = [cause, fields['cause']];
  const known = errors.find(isMillraceError);
  if (known !== undefined) return known;
  const refusal = errors.find((error) => error instanceof A2AError);
  if (refusal !== undefined) {
    return failure(remote, 'server', `refused: ${cleaned(refusal.message, 500)}`, cause);
  }
  const message = typeof fields['message'] === 'string' ? fields['message'] : '';
  if (/^(?:fetch failed|terminated)$/u.test(message)) {
    return failure(remote, 'connection', 'cannot be reached', cause);
  }
  const why = `sent a response that is not valid: ${cleaned(message, 500)}`;
  return failure(remote, 'invalidResponse', why, cause);
};

/** Text of a remote agent, cleaned and cut. */
export const cleaned = (text: string, maxLength: number): string => {
  const clean = untrustedText(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
};
