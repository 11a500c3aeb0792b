import { MillraceError } from '@millrace/core';
import { customHeaders, variable } from './environment.js';
import type { ApiKey, EndpointOptions } from './options.js';
import type { Profile } from './profile.js';

/** Where a vendor is, and how it knows us. */
export interface Connection {
  readonly baseUrl: string;
  readonly organization: string | null;
  readonly project: string | null;
  /** Headers that every request has; `null` takes away what the SDK would send. */
  readonly headers: Readonly<Record<string, string | null>>;
  readonly credentials: () => Promise<Credentials>;
  /** What must not be shown anywhere, as far as it is known before a request. */
  readonly secrets: readonly string[];
}

/** The key of one request, and the header that carries it. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly secret: string;
}

const noCredentials: Credentials = { headers: {}, secret: '' };

/** Finds out where a vendor is and how it knows us. Throws where something is missing, and says what. */
export const connect = (profile: Profile, options: EndpointOptions): Connection => {
  const { isOpenAI = false } = profile;
  const { headers = {} } = options;
  const baseUrl = baseUrlOf(profile, options);
  const key = options.apiKey ?? variable(profile.keyVariable);
  if (!isKey(key) && !goesWithoutKey(profile, options, baseUrl)) throw keyMissing(profile);

  const ofEnvironment = customHeaders();
  const secretHeaders = [...(isOpenAI ? ofEnvironment : []), ...Object.entries(headers)];
  return {
    baseUrl,
    organization: options.organization ?? (isOpenAI ? variable('OPENAI_ORG_ID') : null) ?? null,
    project: options.project ?? (isOpenAI ? variable('OPENAI_PROJECT_ID') : null) ?? null,
    headers: {
      Authorization: null,
      // What is meant for OpenAI is nobody else's business.
      ...Object.fromEntries(ofEnvironment.map(([name, value]) => [name, isOpenAI ? value : null])),
      ...headers,
    },
    credentials: isKey(key) ? credentialsOf(profile, key) : () => Promise.resolve(noCredentials),
    secrets: [
      ...(typeof key === 'string' ? [key.trim()] : []),
      ...secretHeaders.flatMap(secretsIn),
    ],
  };
};

const isKey = (key: ApiKey | undefined): key is ApiKey =>
  typeof key === 'function' || (typeof key === 'string' && key.trim() !== '');

/** Whoever is elsewhere may want none, or another header. */
const goesWithoutKey = (
  { keyless = false, isOpenAI = false, ...profile }: Profile,
  { headers = {} }: EndpointOptions,
  baseUrl: string,
): boolean =>
  keyless || (isOpenAI && baseUrl !== profile.baseUrl) || Object.keys(headers).some(isSecretHeader);

const keyMissing = ({ name, keyVariable }: Profile): MillraceError => {
  const byVariable = keyVariable === undefined ? '' : `set ${keyVariable}, or `;
  return new MillraceError('config', `${name} needs a key: ${byVariable}pass the option 'apiKey'.`);
};

const baseUrlOf = (profile: Profile, options: EndpointOptions): string => {
  const { name, baseUrlVariable } = profile;
  const given = options.baseUrl ?? variable(baseUrlVariable) ?? profile.baseUrl;
  const byVariable = baseUrlVariable === undefined ? '' : `set ${baseUrlVariable}, or `;
  const fix = `${byVariable}pass the option 'baseUrl', such as 'https://example.com/v1'`;
  if (given === undefined) {
    throw new MillraceError('config', `${name} needs the address of its server: ${fix}.`);
  }
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/u.test(url.protocol)) {
    throw new MillraceError('config', `The address of ${name} is no http address: ${fix}.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new MillraceError(
      'config',
      `The address of ${name} holds a name and password, which cannot be sent so: pass the option 'headers' instead.`,
    );
  }
  return given.trim().replace(/\/+$/u, '');
};

const isSecretHeader = (name: string): boolean => /auth|key|token|secret|cookie/iu.test(name);

/** The value of a secret header, also without the scheme before it. */
const secretsIn = ([name, value]: readonly [name: string, value: string]): readonly string[] =>
  isSecretHeader(name) ? [value, value.replace(/^\S+\s+/u, '')] : [];

const credentialsOf = ({ name, keyHeader }: Profile, key: ApiKey): Connection['credentials'] => {
  const credentials = (given: string): Credentials => {
    const secret = given.trim();
    const headers: Credentials['headers'] =
      keyHeader === undefined ? { Authorization: `Bearer ${secret}` } : { [keyHeader]: secret };
    return { headers, secret };
  };
  return typeof key === 'string'
    ? () => Promise.resolve(credentials(key))
    : async () => credentials(await asked(name, key));
};

/** What the function throws may hold a secret, so it is not told. */
const asked = async (name: string, key: () => string | PromiseLike<string>): Promise<string> => {
  const given: unknown = await Promise.resolve()
    .then(key)
    .catch(() => undefined);
  if (typeof given === 'string' && given.trim() !== '') return given;
  throw new MillraceError('auth', `The 'apiKey' function for ${name} gave no key.`);
};
