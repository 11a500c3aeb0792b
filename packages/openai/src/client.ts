import { type Access, type SdkRequests, sdkRequests, variable } from '@millrace/wire';
import type { EndpointOptions } from './options.js';
import type { Profile } from './profile.js';

/** Builds requests with the SDK. Starts to load it, which takes 100 ms. */
export const createRequests = (
  { isOpenAI = false }: Profile,
  access: Access,
  path: string,
  options: Pick<EndpointOptions, 'organization' | 'project'>,
): SdkRequests => {
  const {
    organization = isOpenAI ? variable('OPENAI_ORG_ID') : undefined,
    project = isOpenAI ? variable('OPENAI_PROJECT_ID') : undefined,
  } = options;
  return sdkRequests(access, path, async (shared) => {
    const { OpenAI } = await import('openai');
    return new OpenAI({
      ...shared,
      // If these were undefined, the SDK would read its environment variables.
      organization: organization ?? null,
      project: project ?? null,
      adminAPIKey: null,
      webhookSecret: null,
    });
  });
};
