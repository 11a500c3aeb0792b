import { type Access, resolveAccess } from '@millrace/wire';
import type { EndpointOptions } from './options.js';
import type { Profile } from './profile.js';

/** Resolves the address and credentials of a vendor. Throws a `config` error that names what is missing. */
export const accessOf = (profile: Profile, options: EndpointOptions): Access => {
  const { name, baseURL, baseURLVariable, keyVariable, keyless, isOpenAI } = profile;
  const isToken = profile.takesTokens === true && typeof options.apiKey === 'function';
  return resolveAccess(
    {
      vendor: name,
      baseURL,
      baseURLVariable,
      exampleUrl: 'https://example.com/v1',
      keyVariables: keyVariable === undefined ? [] : [keyVariable],
      keyHeader: isToken ? undefined : profile.keyHeader,
      // `openai` is often used with the base URL of another server that has the same API.
      keyless: keyless ?? (isOpenAI === true ? 'elsewhere' : false),
      headersVariable: 'OPENAI_CUSTOM_HEADERS',
      sendsHeaders: isOpenAI ?? false,
    },
    options,
  );
};

/** The name of the server in errors: at a custom base URL, it may not be the vendor. */
export const serverOf = ({ name, baseURL, isOpenAI }: Profile, address: string): string => {
  if (baseURL === undefined || address === baseURL.trim().replace(/\/+$/u, '')) return name;
  return `${isOpenAI === true ? 'The server' : name} at ${new URL(address).host}`;
};
