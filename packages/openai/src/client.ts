import { defaultCaps, guardedFetch } from '@millrace/wire';
import type { OpenAI } from 'openai';
import type { Connection } from './connection.js';
import type { EndpointOptions } from './options.js';

/** The longest that a timer can wait: time is kept by the model, on the scheduler of the call. */
const forever = 2 ** 31 - 1;

/** Makes the function that gives the vendor's client. The SDK is loaded on first use. */
export const createClient = (
  { baseUrl, organization, project, headers }: Connection,
  { fetch, caps }: Pick<EndpointOptions, 'fetch' | 'caps'>,
): (() => Promise<OpenAI>) => {
  let client: Promise<OpenAI> | undefined;
  const load = async (): Promise<OpenAI> => {
    const sdk = await import('openai');
    return new sdk.OpenAI({
      baseURL: baseUrl,
      organization,
      project,
      // The real key goes with each request.
      apiKey: 'none',
      adminAPIKey: null,
      webhookSecret: null,
      defaultHeaders: headers,
      maxRetries: 0,
      timeout: forever,
      logLevel: 'off',
      fetch: guardedFetch({
        errorBytes: caps?.errorBytes ?? defaultCaps.errorBytes,
        ...(fetch === undefined ? {} : { fetch }),
      }),
    });
  };
  return () => (client ??= load());
};
