import { type Access, resolveAccess } from '@millrace/wire';
import type { EndpointOptions } from './options.js';
import type { Profile } from './profile.js';

/** Finds out where a vendor is and how it knows us. Throws where something is missing, and says what. */
export const accessOf = (profile: Profile, options: EndpointOptions): Access => {
  const { name, baseUrl, baseUrlVariable, keyVariable, keyless, isOpenAI } = profile;
  const isToken = profile.takesTokens === true && typeof options.apiKey === 'function';
  return resolveAccess(
    {
      vendor: name,
      baseUrl,
      baseUrlVariable,
      exampleUrl: 'https://example.com/v1',
      keyVariables: keyVariable === undefined ? [] : [keyVariable],
      keyHeader: isToken ? undefined : profile.keyHeader,
      // Other servers that speak the wires of OpenAI are often asked by its name.
      keyless: keyless ?? (isOpenAI === true ? 'elsewhere' : false),
      headersVariable: 'OPENAI_CUSTOM_HEADERS',
      sendsHeaders: isOpenAI ?? false,
    },
    options,
  );
};

/** What errors call the other side: whoever answers at another address need not be the vendor. */
export const serverOf = ({ name, baseUrl, isOpenAI }: Profile, address: string): string => {
  if (baseUrl === undefined || address === baseUrl.trim().replace(/\/+$/u, '')) return name;
  return `${isOpenAI === true ? 'The server' : name} at ${new URL(address).host}`;
};
