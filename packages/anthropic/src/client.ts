import type { Anthropic } from '@anthropic-ai/sdk';
import { MillraceError } from '@millrace/core';
import { guardedFetch } from '@millrace/wire';
import type { Access } from './access.js';
import type { ApiKey } from './options.js';

/** What a client is made with. */
export interface ClientOptions extends Access {
  readonly fetch: typeof fetch | undefined;
  /** Bytes of an error's body that are read. */
  readonly errorBytes: number;
  /** Is told each key that the caller's function gives. */
  readonly onKey: (key: string) => void;
}

/** Sends the body of a request to the Messages API. */
export type Send = (body: unknown, signal: AbortSignal) => Promise<Response>;

/**
 * Makes what sends requests, with the vendor's SDK. The SDK is loaded for the first of them, since that takes a
 * quarter of a second, and has one client. It neither retries, nor times out, nor logs, nor traces, and is given
 * its credentials, so that it looks for none in files: all that is Millrace's.
 */
export const createSend = (options: ClientOptions): Send => {
  let client: Promise<Anthropic> | undefined;
  return async (body, signal) => {
    client ??= createClient(options);
    const sdk = await client;
    const headers = { 'content-type': 'application/json' };
    return sdk
      .post('/v1/messages', { body: toJson(body), headers, stream: true, signal })
      .asResponse();
  };
};

const createClient = async (options: ClientOptions): Promise<Anthropic> => {
  const { Anthropic } = await import('@anthropic-ai/sdk');
  const { apiKey, baseUrl, headers, fetch, errorBytes, onKey } = options;
  return new Anthropic({
    apiKey: typeof apiKey === 'string' ? apiKey : () => askForKey(apiKey, onKey),
    baseURL: baseUrl,
    defaultHeaders: headers,
    fetch: guardedFetch({ errorBytes, ...(fetch === undefined ? {} : { fetch }) }),
    maxRetries: 0,
    timeout: 2 ** 31 - 1,
    logLevel: 'off',
    openTelemetry: false,
  });
};

/** What the function throws may hold a secret, so it is not told. */
const askForKey = async (
  apiKey: Exclude<ApiKey, string>,
  onKey: (key: string) => void,
): Promise<string> => {
  const key: unknown = await Promise.resolve()
    .then(apiKey)
    .catch(() => undefined);
  if (typeof key !== 'string' || key.trim() === '') {
    throw new MillraceError('auth', `The 'apiKey' function for Anthropic gave no key.`);
  }
  onKey(key.trim());
  return key.trim();
};

/** Half a character, as cutting a text may leave it, is no JSON to the API. */
const toJson = (body: unknown): string => {
  const json = JSON.stringify(body);
  return json.includes('\\ud') ? json.replace(loneSurrogate, '$1\\ufffd') : json;
};

/** As `JSON.stringify` writes it, behind an even number of backslashes. */
const loneSurrogate = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;
