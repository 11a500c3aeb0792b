import { type Access, type SdkRequests, sdkRequests } from '@millrace/wire';

/** Builds requests with the SDK. Starts to load it, which takes 250 ms. */
export const createRequests = (access: Access): SdkRequests =>
  sdkRequests(access, '/v1/messages', async (shared) => {
    const { Anthropic } = await import('@anthropic-ai/sdk');
    return new Anthropic({ ...shared, openTelemetry: false });
  });
