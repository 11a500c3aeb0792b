import { type Access, sdkOptions, variable } from '@millrace/wire';
import type { OpenAI } from 'openai';
import type { EndpointOptions } from './options.js';
import type { Profile } from './profile.js';

/** Returns a function that returns the client of the SDK, which it loads on first use. */
export const createClient = (
  { isOpenAI = false }: Profile,
  access: Access,
  options: EndpointOptions,
): (() => Promise<OpenAI>) => {
  const {
    organization = isOpenAI ? variable('OPENAI_ORG_ID') : undefined,
    project = isOpenAI ? variable('OPENAI_PROJECT_ID') : undefined,
  } = options;
  let client: Promise<OpenAI> | undefined;
  const load = async (): Promise<OpenAI> => {
    const sdk = await import('openai');
    return new sdk.OpenAI({
      ...sdkOptions(access, options),
      // If these were undefined, the SDK would read its environment variables.
      organization: organization ?? null,
      project: project ?? null,
      adminAPIKey: null,
      webhookSecret: null,
    });
  };
  return () => (client ??= load());
};
