import type { Anthropic } from '@anthropic-ai/sdk';
import { type Access, sdkOptions, type SendOptions, type VendorSettings } from '@millrace/wire';

export type Send = (body: string, options: SendOptions) => Promise<Response>;

/** Creates a sender with one SDK client. The SDK is loaded with the first request, because that takes 250 ms. */
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
        // Without the content type, the client would serialize the body again.
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
