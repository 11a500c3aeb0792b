import { STATUS_CODES } from 'node:http';
import { env } from 'node:process';
import { MillraceError } from 'millrace';
import {
  isDelay,
  isText,
  longestDelayMs,
  parsedJson,
  type Rule,
  untrustedText,
  wholeNumber,
} from 'millrace/values';
import {
  catchError,
  defer,
  finalize,
  from,
  map,
  type Observable,
  type SchedulerLike,
  throwError,
  timeout,
} from 'rxjs';
import { textAt } from './json.js';

/** Options of every tool that asks a service. */
export interface ServiceOptions {
  /** The origin and path of the service, such as that of a proxy. Default: that of the vendor. */
  readonly baseURL?: string | undefined;
  /** The maximum duration of each request, in milliseconds. Default: 15,000. */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of characters of a result for the model. Default: 8,000. */
  readonly maxLength?: number | undefined;
}

export const serviceRules = {
  baseURL: [
    (value: unknown) => {
      if (typeof value !== 'string') return false;
      if (isWebAddress(value)) return true;
      // The message of other options quotes the value, and this one may contain a password.
      throw new MillraceError(
        'config',
        "'baseURL' must be a URL with http:// or https://, without a password and a query.",
      );
    },
    'a string',
  ],
  timeoutMs: isDelay,
  maxLength: wholeNumber(200),
} as const satisfies Readonly<Record<string, Rule>>;

export const keyRules = { ...serviceRules, apiKey: isText };

const isWebAddress = (value: string): boolean => {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password, search, hash } = new URL(value);
  return /^https?:$/u.test(protocol) && `${username}${password}${search}${hash}` === '';
};

export interface Service {
  /** For error messages. */
  readonly name: string;
  readonly baseURL: string;
  /** Removed from every error. */
  readonly secrets: readonly string[];
  readonly timeoutMs: number;
}

export interface ServiceRequest {
  /** Added to the base URL. */
  readonly path: string;
  /** Parameters that are `undefined` are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, with the method POST. Default: the method is GET. */
  readonly body?: unknown;
  /** The base URL of this request, if the vendor has several hosts. Default: that of the service. */
  readonly baseURL?: string;
}

export const createService = (
  name: string,
  vendorUrl: string,
  { baseURL = vendorUrl, timeoutMs = 15_000 }: ServiceOptions,
  key?: string,
): Service => ({
  name,
  baseURL: baseURL.replace(/\/+$/u, ''),
  timeoutMs,
  secrets: key === undefined || key === '' ? [] : [key],
});

/** The key of a vendor, from the option or the environment. Throws a `config` error without one. */
export const requiredKey = (owner: string, given: string | undefined, variable: string): string => {
  const key = (given ?? env[variable] ?? '').trim();
  if (/^[\x21-\x7e]+$/u.test(key)) return key;
  const what = `pass 'apiKey', or set the environment variable ${variable}.`;
  throw new MillraceError(
    'config',
    // Such a key would be in the error of the request, because no header can hold it.
    key === ''
      ? `${owner} needs a key: ${what}`
      : `${owner} has a key with a space or a non-ASCII letter: ${what}`,
  );
};

/** The key of a vendor that does not require one, or `undefined`. */
export const optionalKey = (given: string | undefined, variable: string): string | undefined => {
  const key = (given ?? env[variable] ?? '').trim();
  return key === '' ? undefined : key;
};

// ---------------------------------------------------------------- requests

/** Of a body, after decompression. */
const maxBytes = 2_000_000;

/**
 * Asks a service, and emits the parsed JSON of its answer. Unsubscribing aborts the request.
 *
 * Errors have the code of their status: `auth`, `rateLimited` with `retryAfterMs`, `invalidRequest`, `redirect` or `server`;
 * or else `connection`, `timeout`, `tooLarge` or `invalidResponse`. They contain no secret, and no URL.
 */
export const json$ = (
  service: Service,
  request: ServiceRequest,
  scheduler: SchedulerLike,
): Observable<unknown> =>
  text$(service, request, scheduler).pipe(
    map((text) => {
      const json = parsedJson(text);
      if (json !== undefined) return json;
      throw serviceError(service, 'invalidResponse', 'answered with something other than JSON');
    }),
  );

/** As `json$`, and emits the text of the answer. */
export const text$ = (
  service: Service,
  request: ServiceRequest,
  scheduler: SchedulerLike,
): Observable<string> =>
  defer(() => {
    const abort = new AbortController();
    const asked = ask(service, request, abort.signal);
    return from(asked).pipe(finalize(() => abort.abort()));
  }).pipe(
    timeout({
      first: service.timeoutMs,
      scheduler,
      with: () =>
        throwError(() =>
          serviceError(service, 'timeout', `took longer than ${service.timeoutMs} ms`),
        ),
    }),
    catchError((error: unknown) => throwError(() => explained(service, error))),
  );

const ask = async (
  service: Service,
  request: ServiceRequest,
  signal: AbortSignal,
): Promise<string> => {
  const response = await fetch(urlOf(service, request), {
    signal,
    // A redirect would send the key elsewhere.
    redirect: 'manual',
    method: request.body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json, application/xml;q=0.9, */*;q=0.1',
      'user-agent': 'Millrace',
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
  });
  const text = await textOf(service, response);
  if (response.ok) return text;
  throw statusError(service, response, text);
};

const urlOf = (
  service: Service,
  { baseURL = service.baseURL, path, query = {} }: ServiceRequest,
) => {
  const url = new URL(baseURL + path);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
};

/** Fails as soon as a body is too large: a few kilobytes may decompress to gigabytes. */
const textOf = async (service: Service, { body }: Response): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (body === null) return '';
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue;
    size += chunk.length;
    if (size > maxBytes) {
      throw serviceError(service, 'tooLarge', `answered with more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

// ---------------------------------------------------------------- errors

/** An error of a service whose message is for a model: `Tavily answered with … .` */
export const serviceError = (
  { name, secrets }: Pick<Service, 'name' | 'secrets'>,
  code: MillraceError['code'],
  what: string,
  more: { readonly status?: number; readonly retryAfterMs?: number; readonly cause?: unknown } = {},
): MillraceError => new MillraceError(code, `${name} ${withoutSecrets(what, secrets)}.`, more);

/** Text of a service for an error, without secrets. They are removed first: a part of one could not be found. */
export const reasonOf = (
  { secrets }: Pick<Service, 'secrets'>,
  text: string,
  maxLength: number,
): string => oneLine(withoutSecrets(text, secrets), maxLength);

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), text);

const statusError = (service: Service, response: Response, text: string): MillraceError => {
  const { status } = response;
  const retryAfterMs = retryAfter(response.headers.get('retry-after'));
  const reason = reasonIn(service, parsedJson(text));
  const wait = retryAfterMs === undefined ? '' : `. Try again in ${retryAfterMs / 1_000} s`;
  return serviceError(
    service,
    codeOf(status),
    `answered with the status ${`${status} ${STATUS_CODES[status] ?? ''}`.trim()}${reason}${wait}`,
    { status, ...(retryAfterMs !== undefined && { retryAfterMs }) },
  );
};

const codeOf = (status: number): MillraceError['code'] => {
  if (status < 400) return 'redirect';
  if (status === 401 || status === 403) return 'auth';
  if (status === 408) return 'timeout';
  // DeepL answers with 456 if the quota of a month is used up.
  if (status === 429 || status === 456) return 'rateLimited';
  return status >= 500 ? 'server' : 'invalidRequest';
};

/** Seconds, or a date, up to the longest delay of a timer. */
const retryAfter = (header: string | null): number | undefined => {
  if (header === null) return undefined;
  const ms = /^\d{1,7}$/u.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(0, Math.round(ms)), longestDelayMs) : undefined;
};

/** The places where vendors explain an error. */
const reasonIn = (service: Service, json: unknown): string => {
  const places = [
    ...[
      ['error', 'message'],
      ['error', 'detail'],
      ['detail', 'error'],
      ['error', 'info'],
      ['error'],
    ],
    ...[['message'], ['detail'], ['reason']],
  ];
  const reason = places.map((path) => textAt(json, ...path)).find((it) => it !== '');
  return reason === undefined ? '' : `: ${reasonOf(service, reason, 200).replace(/\.$/u, '')}`;
};

const explained = (service: Service, error: unknown): MillraceError => {
  if (error instanceof MillraceError) return error;
  const { cause = error } = error instanceof Error ? error : {};
  const why = withoutSecrets(cause instanceof Error ? cause.message : '', service.secrets);
  return serviceError(service, 'connection', 'cannot be reached', { cause: new Error(why) });
};

// ---------------------------------------------------------------- text

/** One line of up to `maxLength` characters, cleaned. */
export const oneLine = (text: string, maxLength: number): string => {
  const line = untrustedText(text.replace(/[\s\p{Cc}]+/gu, ' ').trim()).trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1).trimEnd()}…` : line;
};

/** Text without the tags and entities that services use to emphasize matches. */
export const withoutTags = (text: string): string =>
  text
    .replace(/<\/?[a-z][^<>]{0,200}>/giu, '')
    .replace(/&(?:(amp|lt|gt|quot|nbsp|apos)|#(\d{1,7})|#x([\da-f]{1,6}));/giu, decoded);

const decoded = (all: string, name?: string, decimal?: string, hex?: string): string => {
  if (name !== undefined) return entities[name.toLowerCase()] ?? all;
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
};

const entities: Readonly<Partial<Record<string, string>>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ', apos: "'" },
};
