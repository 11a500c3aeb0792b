import { MillraceError } from '@millrace/core';
import { addressOf, type AddressSource } from './address.js';
import { type Header, headersIn, variable } from './environment.js';
import { inSentence } from './address.js';
import type { ApiKey, VendorSettings } from './settings.js';

/** The address of a vendor, and how it authenticates. */
export interface AccessSource extends AddressSource {
  /** The environment variables that may hold the key, in order of precedence. */
  readonly keyVariables: readonly string[];
  /** The header that carries the key. Default: `authorization`, as a bearer token. */
  readonly keyHeader?: string | undefined;
  /** Whether requests may go without a key: always, or only to a base URL other than the vendor's. Default: false. */
  readonly keyless?: boolean | 'elsewhere' | undefined;
  /** The environment variable with headers that the vendor's SDK adds to every request. */
  readonly headersVariable: string;
  /** Whether to send these headers. If false, they are removed from every request. Default: true. */
  readonly sendsHeaders?: boolean | undefined;
}

/** The resolved address, headers and credentials of a vendor. */
export interface Access {
  readonly baseUrl: string;
  /** Headers of every request, with lowercase names; `null` removes a header that the SDK would send. */
  readonly headers: Readonly<Record<string, string | null>>;
  /**
   * The key, or a function that returns the key of one request. It rejects with `auth`, without a cause, if the `apiKey`
   * function fails.
   */
  readonly credentials: Credentials | (() => Promise<Credentials>);
  /** Values to redact everywhere, as far as they are known before a request. */
  readonly secrets: readonly string[];
}

/** The key of one request, and the header that carries it. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  /** The key to redact everywhere; empty if there is no key. */
  readonly secret: string;
}

/**
 * Resolves the address and credentials of a vendor from the settings, then from the environment. A header in the
 * settings overrides the key. Throws a `MillraceError` (`config`) that names what is missing.
 */
export const resolveAccess = (
  source: AccessSource,
  { apiKey, baseUrl: given, headers = {} }: Pick<VendorSettings, 'apiKey' | 'baseUrl' | 'headers'>,
): Access => {
  const { keyVariables, headersVariable, sendsHeaders: isMeant = true } = source;
  const baseUrl = addressOf(source, given);
  const key = apiKey ?? keyVariables.map(variable).find((it) => it !== undefined);
  const set = Object.entries(headers);
  const ambient = headersIn(headersVariable);
  [...(isMeant ? ambient : []), ...set].forEach((header) => checkHeader(source, header));
  if (typeof key === 'string' && !isSendable(key)) throw unsendable('config', source);
  if (!isKey(key) && !isKeyless(source, baseUrl) && !set.some(isSecret)) throw keyMissing(source);
  return {
    baseUrl,
    headers: inLowerCase([
      // The SDK only knows a placeholder key.
      ['authorization', null],
      ...ambient.map(([name, value]) => [name, isMeant ? value : null] as const),
      ...set,
    ]),
    credentials:
      isKey(key) && !Object.hasOwn(inLowerCase(set), headerOf(source))
        ? credentialsBy(source, key)
        : noCredentials,
    secrets: [
      ...(typeof key === 'string' ? [key.trim()] : []),
      ...[...(isMeant ? ambient : []), ...set].filter(isSecret).flatMap(secretsIn),
    ],
  };
};

const isKey = (key: ApiKey | undefined): key is ApiKey =>
  typeof key === 'function' || (typeof key === 'string' && key.trim() !== '');

const isKeyless = ({ keyless = false, ...source }: AccessSource, baseUrl: string): boolean =>
  keyless === 'elsewhere' ? baseUrl !== source.baseUrl : keyless;

const keyMissing = ({ vendor, keyVariables: [name] }: AccessSource): MillraceError => {
  const byVariable = name === undefined ? '' : `set ${name}, or `;
  const fix = `${byVariable}pass the option 'apiKey'`;
  return new MillraceError('config', `${vendor} needs a key: ${fix}.`);
};

const isSecret = ([name]: Header): boolean =>
  /(?:^|[-_])(?:authorization|auth|cookie|credentials?|(?:api)?key|password|secret|token)$/iu.test(
    name,
  );

/** Headers cannot hold line breaks or the typographic quotes of a word processor. */
const isSendable = (key: string): boolean => /^[\x20-\x7e]*$/u.test(key.trim());

const unsendable = (
  code: 'auth' | 'config',
  { vendor, keyVariables }: AccessSource,
): MillraceError => {
  const places = ["the option 'apiKey'", ...keyVariables].join(' or ');
  return new MillraceError(
    code,
    `The key for ${inSentence(vendor)} contains characters that are not allowed, such as a line break or a typographic quote: check ${places}.`,
  );
};

/** Checked here because the error of `fetch` would include the value of the header. */
const checkHeader = ({ vendor }: AccessSource, [name, value]: Header): void => {
  if (!/^[\w!#$%&'*+.^`|~-]+$/u.test(name)) {
    throw new MillraceError('config', `A header for ${inSentence(vendor)} has an invalid name.`);
  }
  if (!/^[\t\x20-\x7e\x80-\xff]*$/u.test(value.trim())) {
    throw new MillraceError(
      'config',
      `The header '${name}' for ${inSentence(vendor)} contains characters that are not allowed, such as a line break.`,
    );
  }
};

/** The value of a header, with and without its scheme, or the values of its cookies. */
const secretsIn = ([name, value]: Header): readonly string[] => [
  value,
  ...(/cookie$/iu.test(name)
    ? value.split(/;\s*/u).map((cookie) => cookie.replace(/^[^=]*=/u, ''))
    : [value.replace(/^\S+\s+/u, '')]),
];

/** Header names are case-insensitive; the last one takes precedence. */
const inLowerCase = (headers: readonly (readonly [name: string, value: string | null])[]) =>
  Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value] as const));

const noCredentials: Credentials = { headers: {}, secret: '' };

const headerOf = ({ keyHeader = 'authorization' }: AccessSource): string => keyHeader.toLowerCase();

const credentialsOf = (source: AccessSource, secret: string): Credentials => ({
  headers: { [headerOf(source)]: source.keyHeader === undefined ? `Bearer ${secret}` : secret },
  secret,
});

const credentialsBy = (source: AccessSource, key: ApiKey): Access['credentials'] => {
  if (typeof key === 'function') {
    return async () => credentialsOf(source, await keyFrom(source, key));
  }
  return credentialsOf(source, key.trim());
};

/** The error of the function is dropped because it may contain a secret. */
const keyFrom = async (source: AccessSource, key: Exclude<ApiKey, string>): Promise<string> => {
  const given: unknown = await Promise.resolve()
    .then(key)
    .catch(() => undefined);
  if (typeof given !== 'string' || given.trim() === '') {
    throw new MillraceError(
      'auth',
      `The 'apiKey' function for ${inSentence(source.vendor)} returned no key.`,
    );
  }
  if (!isSendable(given)) throw unsendable('auth', source);
  return given.trim();
};
