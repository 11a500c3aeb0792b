import { isMillraceError, MillraceError, tool, type ToolContext, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { isRecord, parsedJson } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  expand,
  finalize,
  map,
  type Observable,
  of,
  reduce,
  throwError,
  timeout,
} from 'rxjs';
import { attempts, totalDelay } from '../attempts.js';
import type { HttpParams } from '../document.js';
import { limits } from '../limits.js';
import { truncate } from '../problem.js';
import { asText, fill, valueAt } from '../render.js';
import type { FlowHttp, FlowResponse } from '../resources.js';
import type { Scope } from '../scope.js';
import { isLocalHost } from '../local-host.js';
import { createSecrets, type Secrets } from '../secrets.js';
import { templatesOf } from '../templates-of.js';
import { toResult, type Work } from '../work.js';
import { outputOf, resultOf } from './code.js';
import { errorOfFailure, type Failure, runOnce$ } from './tool.js';

/** A request as events show it: secrets are references. */
interface Shown {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Methods whose repetition has the effect of one request (RFC 9110, section 9.2.2). */
export const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

/** Sends a request, as a tool call: with approval, events and a step in the journal. */
export const httpWork = (
  id: string,
  params: HttpParams,
  http: FlowHttp,
  values: Readonly<Record<string, string>> = {},
): Work => {
  const { method = 'GET', timeout_ms = 30_000, idempotency_key = false, retry } = params;
  const secrets = createSecrets(
    templatesOf({ component_name: 'http', params }).map(({ text }) => text),
    values,
  );
  const asTool = tool({
    name: 'http_request',
    description: 'Sends an HTTP request.',
    input: jsonSchema({
      type: 'object',
      properties: {
        method: { type: 'string' },
        url: { type: 'string' },
        headers: { type: 'object', additionalProperties: { type: 'string' } },
        body: {},
      },
      required: ['method', 'url', 'headers'],
    }),
    idempotent: idempotentMethods.has(method) || idempotency_key,
    timeoutMs: Math.min(
      (timeout_ms + 1_000) * ((retry?.times ?? 0) + 1) + totalDelay(retry),
      limits.delay,
    ),
    run: (shown: Shown, context: ToolContext) =>
      defer(() => send$(requestOf(shown, params, secrets, context), params, http)).pipe(
        timeout({
          first: timeout_ms,
          scheduler: context.scheduler,
          with: () => throwError(() => failure('timeout', `took longer than ${timeout_ms} ms`)),
        }),
        attempts(retry, context.scheduler, isTransient),
        map(({ type, text }) => toolOutput(resultOf(resultIn(secrets.redact(text), type, params)))),
        catchError((error: unknown) => of(failedWith(error, shown, secrets))),
      ),
  });
  return (scope) =>
    defer(() =>
      runOnce$(id, asTool, { ...shownRequest(params, method, scope, secrets) }, scope, {
        errorOf: errorOfFailure,
      }),
    ).pipe(map((reply) => toResult(reply, outputOf)));
};

// ---------------------------------------------------------------- the request

const shownRequest = (
  { url, headers = {}, body }: HttpParams,
  method: string,
  scope: Scope,
  secrets: Secrets,
): Shown => ({
  method,
  url: urlOf(url, scope, secrets),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secrets.show(value, scope)]),
  ),
  ...(body !== undefined && { body: bodyOf(body, scope, secrets) }),
});

/**
 * Inserted values are encoded, so that they cannot change the path or other parameters; but one may be the start.
 * Segments of dots would change the path as well, and cannot be encoded.
 */
const urlOf = (url: string, scope: Scope, secrets: Secrets): string => {
  const shown = secrets.show(url, scope, (value, index) =>
    index === 0 ? value.trim() : encodeURIComponent(value),
  );
  if (/^[^?#]*[/\\](?:\.|%2e){1,2}(?:[/\\?#]|$)/iu.test(shown)) {
    throw failure('invalidRequest', "Its URL has a segment '.' or '..'.");
  }
  return shown;
};

/** Fills the templates of a body. In one with secrets, every text is written which distinguishes secrets from data. */
const bodyOf = (body: unknown, scope: Scope, secrets: Secrets): unknown => {
  if (typeof body === 'string') return secrets.show(body, scope);
  const fillShown = (value: unknown): unknown => {
    if (typeof value === 'string') {
      return secrets.isIn(value) ? secrets.show(value, scope) : secrets.escape(fill(value, scope));
    }
    if (Array.isArray(value)) return value.map(fillShown);
    return isRecord(value)
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillShown(item)]))
      : value;
  };
  return fillShown(body);
};

interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether it must not be sent to another origin. */
  readonly hasCredentials: boolean;
}

const requestOf = (
  { method, url, headers, body }: Shown,
  { idempotency_key = false, url: template, headers: given, body: ofBody }: HttpParams,
  secrets: Secrets,
  { idempotencyKey }: ToolContext,
): HttpRequest => {
  const own = Object.entries(headers).map(
    ([name, value]) => [name, secrets.reveal(value)] as const,
  );
  const invalid = own.find(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/u.test(value));
  if (invalid !== undefined) {
    throw failure(
      'invalidRequest',
      `has a header '${invalid[0]}' with characters that are not allowed`,
    );
  }
  const names = new Set(own.map(([name]) => name.toLowerCase()));
  const isJson = body !== undefined && typeof body !== 'string';
  const revealed = secrets.revealAll(body);
  return {
    method,
    url: secrets.reveal(url, encodeURIComponent),
    headers: {
      ...(isJson && !names.has('content-type') && { 'content-type': 'application/json' }),
      ...(idempotency_key && { 'idempotency-key': idempotencyKey }),
      ...Object.fromEntries(own),
    },
    ...(body !== undefined && {
      body: typeof revealed === 'string' ? revealed : JSON.stringify(revealed),
    }),
    hasCredentials:
      [
        template,
        ...Object.values(given ?? {}),
        ofBody === undefined ? '' : JSON.stringify(ofBody),
      ].some(secrets.isIn) ||
      ['authorization', 'cookie', 'proxy-authorization'].some((name) => names.has(name)),
  };
};

// ---------------------------------------------------------------- the exchange

interface Received {
  /** The media type, in lower case and without parameters. */
  readonly type: string;
  readonly text: string;
}

/** Sends a request, and follows redirects. Unsubscribing closes the connection. */
const send$ = (
  request: HttpRequest,
  params: HttpParams,
  http: FlowHttp,
  redirects = 0,
): Observable<Received> => {
  const { max_redirects = 5, max_bytes = 1_000_000 } = params;
  const url = checkedUrl(request.url, http);
  const { method, headers, body } = request;
  return withSignal$((signal) =>
    defer(() =>
      http.fetch(url.href, {
        ...{ method, headers, redirect: 'manual', signal },
        ...(body !== undefined && { body }),
      }),
    ).pipe(
      catchError((error: unknown) => throwError(() => unreachable(error))),
      concatMap((response) => {
        const location = response.headers.get('location');
        if (isRedirect(response.status) && location !== null) {
          if (redirects >= max_redirects) {
            throw failure('redirect', `redirects more than ${max_redirects} times`);
          }
          const next = redirected(request, url, location, response.status);
          return send$(next, params, http, redirects + 1);
        }
        if (response.status < 200 || response.status > 299) throw statusError(response.status);
        return received$(response, max_bytes);
      }),
    ),
  );
};

/** Lends a signal that aborts when the source is unsubscribed from, or has ended. */
const withSignal$ = <T>(source: (signal: AbortSignal) => Observable<T>): Observable<T> =>
  defer(() => {
    const abort = new AbortController();
    return source(abort.signal).pipe(finalize(() => abort.abort()));
  });

const checkedUrl = (address: string, { isPrivateAllowed = () => false }: FlowHttp): URL => {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) throw failure('invalidRequest', 'has no valid URL');
  if (!/^https?:$/u.test(url.protocol)) {
    throw failure('invalidRequest', 'has no http or https URL');
  }
  if (url.username + url.password !== '') {
    throw failure('invalidRequest', 'has a user name or a password in its URL: use a header');
  }
  if (isLocalHost(url.hostname) && !isPrivateAllowed(url)) {
    throw failure('invalidRequest', "needs 'isPrivateAllowed': its address is not public");
  }
  return url;
};

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

/** As browsers redirect: 303 and, for POST, 301 and 302 continue with GET. */
const redirected = (
  request: HttpRequest,
  from: URL,
  location: string,
  status: number,
): HttpRequest => {
  const to = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  if (to === undefined) throw failure('redirect', 'redirects to no valid URL');
  if (to.origin !== from.origin && request.hasCredentials) {
    const why = 'redirects to another origin, which must not get its secrets';
    throw failure('redirect', why);
  }
  if (to.origin !== from.origin && request.body !== undefined && status >= 307) {
    throw failure('redirect', 'redirects to another origin, which must not get its body');
  }
  const isKept = status >= 307 || request.method === 'GET' || request.method === 'HEAD';
  if (isKept) return { ...request, url: to.href };
  const { body: _body, headers, ...rest } = request;
  const kept = Object.entries(headers).filter(([name]) => !/^content-/iu.test(name));
  return { ...rest, method: 'GET', headers: Object.fromEntries(kept), url: to.href };
};

const received$ = ({ headers, body }: FlowResponse, maxBytes: number): Observable<Received> => {
  const contentType = headers.get('content-type') ?? '';
  const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  if (body === null) return of({ type, text: '' });
  return chunks$(body).pipe(
    catchError((error: unknown) => throwError(() => unreachable(error))),
    reduce(
      ({ chunks, size }, chunk) => {
        if (size + chunk.length > maxBytes) {
          throw failure('tooLarge', `was answered with more than ${maxBytes} bytes`);
        }
        chunks.push(chunk);
        return { chunks, size: size + chunk.length };
      },
      { chunks: new Array<Uint8Array>(), size: 0 },
    ),
    map(({ chunks, size }) => ({
      type,
      text: decoderOf(contentType).decode(joined(chunks, size)),
    })),
  );
};

const chunks$ = (body: ReadableStream<Uint8Array>): Observable<Uint8Array> =>
  defer(() => {
    const reader = body.getReader();
    const next$ = defer(() => reader.read());
    return next$.pipe(
      expand(({ done }) => (done ? EMPTY : next$)),
      concatMap(({ value }) => (value === undefined ? [] : [value])),
    );
  });

const joined = (chunks: readonly Uint8Array[], size: number): Uint8Array => {
  const all = new Uint8Array(size);
  chunks.reduce((at, chunk) => {
    all.set(chunk, at);
    return at + chunk.length;
  }, 0);
  return all;
};

const decoderOf = (contentType: string): InstanceType<typeof TextDecoder> => {
  const charset = /charset="?([\w-]+)/iu.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};

/** The value of a JSON response, or its text. */
const resultIn = (text: string, type: string, { result }: HttpParams): unknown => {
  const isJson = type === 'application/json' || type.endsWith('+json');
  const value: unknown = isJson || result !== undefined ? parsedJson(text) : undefined;
  if (result === undefined) return value ?? text;
  const found = valueAt(value, result.split('.'));
  if (found !== undefined) return found;
  throw failure('invalidResponse', `was answered without a value at '${result}'`);
};

// ---------------------------------------------------------------- errors

const failure = (
  code: MillraceError['code'],
  message: string,
  more: { readonly status?: number } = {},
): MillraceError => new MillraceError(code, message, more);

/** The messages of libraries may contain headers, so they are left out; codes are names of theirs. */
const unreachable = (error: unknown): MillraceError => {
  if (isMillraceError(error)) return error;
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = isRecord(cause) && 'code' in cause ? ` (${asText(cause['code'])})` : '';
  // The refusal of `guardedFetch`, which names no data but the port.
  const refusal = /must not be fetched: .*[^.]/u.exec(String(cause))?.[0];
  if (refusal !== undefined) return failure('invalidRequest', refusal);
  return failure('connection', `failed: the connection was not possible or was lost${code}`);
};

const statusError = (status: number): MillraceError => {
  const code = codeOf(status);
  return failure(code, `was answered with the status ${status}`, { status });
};

const codeOf = (status: number): MillraceError['code'] => {
  if (status === 429) return 'rateLimited';
  if (status === 401 || status === 403) return 'auth';
  if (status === 408) return 'timeout';
  return status >= 500 ? 'server' : 'tool';
};

const isTransient = (error: unknown): boolean => isMillraceError(error) && error.retryable;

const failedWith = (error: unknown, { method, url }: Shown, secrets: Secrets) => {
  if (!isMillraceError(error)) throw error;
  const { code, userMessage, status } = error;
  const details: Failure = {
    failure: { code, userMessage, ...(status !== undefined && { status }) },
  };
  const content = secrets.redact(`The request ${method} ${truncate(url, 200)} ${error.message}.`);
  return toolOutput({ content, isError: true, details });
};
