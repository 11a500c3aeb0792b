import type { Anthropic } from '@anthropic-ai/sdk';
import { type Access, sdkOptions, type SendOptions, type VendorSettings } from '@millrace/wire';

/** Sends the body of a request, as JSON, to the Messages API. */
export type Send = (body: string, options: SendOptions) => Promise<Response>;

/**
 * Makes what sends requests, with the vendor's SDK. The SDK is loaded for the first of them, since that takes a
 * quarter of a second, and has one client.
 */
export const createSend = (
  access: Access,
  settings: Pick<VendorSettings, 'fetch' | 'caps'>,
): Send => {
  let client: Promise<Anthropic> | undefined;
  return async (body, { signal, headers }) => {
    client ??= createClient(access, settings);
    const sdk = await client;
    return sdk
      .post('/v1/messages', {
        body,
        // The client would write anew what it is not told the type of.
        headers: { ...headers, 'content-type': 'application/json' },
        stream: true,
        signal,
      })
      .asResponse();
  };
};

const createClient = async (
  access: Access,
  settings: Pick<VendorSettings, 'fetch' | 'caps'>,
): Promise<Anthropic> => {
  const { Anthropic } = await import('@anthropic-ai/sdk');
  return new Anthropic({ ...sdkOptions(access, settings), openTelemetry: false });
};
