import { MillraceError } from '@millrace/core';
import { addressOf, type AddressSource } from './address.js';
import { type Header, headersIn, variable } from './environment.js';
import { inside } from './inside.js';
import type { ApiKey, VendorSettings } from './settings.js';

/** Where a vendor may be found, and how it wants to know us. */
export interface AccessSource extends AddressSource {
  /** The environment variables that may hold the key, the first one first. */
  readonly keyVariables: readonly string[];
  /** The header that carries the key. Default: `authorization`, as a bearer token. */
  readonly keyHeader?: string | undefined;
  /** It answers without a key: always, or only at another address than its own. Default: false. */
  readonly keyless?: boolean | 'elsewhere' | undefined;
  /** The environment variable with headers that the vendor's SDK adds to whatever it sends. */
  readonly headersVariable: string;
  /** These headers are meant for the vendor; else they are taken away. Default: true. */
  readonly isMeant?: boolean | undefined;
}

/** Where a vendor is, and how it knows us. */
export interface Access {
  readonly baseUrl: string;
  /** Headers that every request has, their names in lower case; `null` takes away what the SDK would send. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** Gives the key of one request. Rejects with `auth`, and without the reason, where a function gives none. */
  readonly credentials: () => Promise<Credentials>;
  /** What must not be shown anywhere, as far as it is known before a request. */
  readonly secrets: readonly string[];
}

/** The key of one request, and the header that carries it. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  /** What must not be shown anywhere; empty where there is no key. */
  readonly secret: string;
}

/**
 * Finds out where a vendor is and how it knows us, from the settings and then from the environment. A header that is
 * set goes before the key. Throws a `MillraceError` (`config`) where something is missing, and says what.
 */
export const accessTo = (
  source: AccessSource,
  { apiKey, baseUrl: given, headers = {} }: Pick<VendorSettings, 'apiKey' | 'baseUrl' | 'headers'>,
): Access => {
  const { keyVariables, headersVariable, isMeant = true } = source;
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
      // The SDK has only a placeholder to send.
      ['authorization', null],
      ...ambient.map(([name, value]) => [name, isMeant ? value : null] as const),
      ...set,
    ]),
    credentials:
      isKey(key) && !Object.hasOwn(inLowerCase(set), headerOf(source))
        ? credentialsBy(source, key)
        : () => Promise.resolve(noCredentials),
    secrets: [
      ...(typeof key === 'string' ? [key.trim()] : []),
      ...[...(isMeant ? ambient : []), ...set].filter(isSecret).flatMap(secretsIn),
    ],
  };
};

const isKey = (key: ApiKey | undefined): key is ApiKey =>
  typeof key === 'function' || (typeof key === 'string' && key.trim() !== '');

/** Whoever is elsewhere may want none. */
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

/** Whether a header can hold a key: it cannot hold a line break, or the quotes that a word processor makes. */
const isSendable = (key: string): boolean => /^[\x20-\x7e]*$/u.test(key.trim());

const unsendable = (
  code: 'auth' | 'config',
  { vendor, keyVariables }: AccessSource,
): MillraceError => {
  const places = ["the option 'apiKey'", ...keyVariables].join(' or ');
  const what = 'a line break, a quotation mark of a text or another letter beyond ASCII';
  return new MillraceError(
    code,
    `The key for ${inside(vendor)} holds what no header can, such as ${what}: check ${places}.`,
  );
};

/** What `fetch` says of such a header shows its value. */
const checkHeader = ({ vendor }: AccessSource, [name, value]: Header): void => {
  if (!/^[\w!#$%&'*+.^`|~-]+$/u.test(name)) {
    throw new MillraceError(
      'config',
      `A header for ${inside(vendor)} has a name that no header can have.`,
    );
  }
  if (!/^[\t\x20-\x7e\x80-\xff]*$/u.test(value.trim())) {
    throw new MillraceError(
      'config',
      `The header '${name}' for ${inside(vendor)} holds what no header can, such as a line break.`,
    );
  }
};

/** The value of a header, also without the scheme before it; the values of cookies. */
const secretsIn = ([name, value]: Header): readonly string[] => [
  value,
  ...(/cookie$/iu.test(name)
    ? value.split(/;\s*/u).map((cookie) => cookie.replace(/^[^=]*=/u, ''))
    : [value.replace(/^\S+\s+/u, '')]),
];

/** Of headers that are called alike the last one counts, however they are written. */
const inLowerCase = (headers: readonly (readonly [name: string, value: string | null])[]) =>
  Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value] as const));

const noCredentials: Credentials = { headers: {}, secret: '' };

const headerOf = ({ keyHeader = 'authorization' }: AccessSource): string => keyHeader.toLowerCase();

const credentialsOf = (source: AccessSource, secret: string): Credentials => ({
  headers: { [headerOf(source)]: source.keyHeader === undefined ? `Bearer ${secret}` : secret },
  secret,
});

/** A text stays what it is, a function is asked each time. */
const credentialsBy = (source: AccessSource, key: ApiKey): Access['credentials'] => {
  if (typeof key === 'function') {
    return async () => credentialsOf(source, await keyFrom(source, key));
  }
  const credentials = credentialsOf(source, key.trim());
  return () => Promise.resolve(credentials);
};

/** What the function throws may hold a secret, so it is not told. */
const keyFrom = async (source: AccessSource, key: Exclude<ApiKey, string>): Promise<string> => {
  const given: unknown = await Promise.resolve()
    .then(key)
    .catch(() => undefined);
  if (typeof given !== 'string' || given.trim() === '') {
    throw new MillraceError(
      'auth',
      `The 'apiKey' function for ${inside(source.vendor)} gave no key.`,
    );
  }
  if (!isSendable(given)) throw unsendable('auth', source);
  return given.trim();
};
