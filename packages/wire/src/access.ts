import { MillraceError } from 'millrace';
import { addressOf, type AddressSource, inSentence } from './address.js';
import { type Header, headersIn, variable } from './environment.js';
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
  readonly baseURL: string;
  /** Headers of every request, with lowercase names; `null` removes a header that the SDK would send. */
  readonly headers: Readonly<Record<string, string | null>>;
  /**
   * The key, or a function that returns the key of one request. It rejects with `auth`, without a cause, if the `apiKey`
   * function fails.
   */
  readonly credentials: Credentials | (() => Promise<Credentials>);
  /** Values to redact everywhere, as far as they are known before a request. */
  readonly secrets: readonly string[];
  /** Whether the SDK may run in a browser: if the user allowed it, and for requests without a secret. */
  readonly dangerouslyAllowBrowser: boolean;
}

/** The key of one request, and the header that carries it. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  /** The key to redact everywhere; empty if there is no key. */
  readonly secret: string;
}

type AccessSettings = Pick<
  VendorSettings,
  'apiKey' | 'baseURL' | 'headers' | 'dangerouslyAllowBrowser'
>;

/**
 * Resolves the address and credentials of a vendor from the settings, then from the environment. A header in the
 * settings overrides the key. A missing key fails the requests: until there is one, each looks for the variables again.
 * Throws a `MillraceError` (`config`) for an invalid key, and for a missing or invalid address.
 */
export const resolveAccess = (source: AccessSource, settings: AccessSettings): Access => {
  const { apiKey, baseURL: given, headers = {}, dangerouslyAllowBrowser } = settings;
  const baseURL = addressOf(source, given);
  const found = apiKey ?? keyIn(source);
  const key = typeof found === 'string' ? checkedKey('config', source, found) : found;
  const set = Object.entries(headers);
  const ambient = headersIn(source.headersVariable);
  const sent = source.sendsHeaders === false ? set : [...ambient, ...set];
  sent.forEach((header) => checkHeader(source, header));
  const withoutKey = !key && (isKeyless(source, baseURL) || set.some(isSecret));
  const secrets = [
    ...(typeof key === 'string' && key ? [key] : []),
    ...sent.filter(isSecret).flatMap(secretsIn),
  ];
  return {
    baseURL,
    headers: inLowerCase([
      // The SDK only knows a placeholder key.
      ['authorization', null],
      ...ambient.map(([name]) => [name, null] as const),
      ...sent,
    ]),
    credentials:
      withoutKey || Object.hasOwn(inLowerCase(set), headerOf(source))
        ? { headers: {}, secret: '' }
        : credentialsBy(source, key),
    secrets,
    dangerouslyAllowBrowser: dangerouslyAllowBrowser ?? (withoutKey && secrets.length === 0),
  };
};

const keyIn = ({ keyVariables }: AccessSource): string | undefined =>
  keyVariables.map(variable).find((it) => it !== undefined);

const isKeyless = ({ keyless = false, ...source }: AccessSource, baseURL: string): boolean =>
  keyless === 'elsewhere' ? baseURL !== source.baseURL : keyless;

const isSecret = ([name]: Header): boolean =>
  /(?:^|[-_])(?:authorization|auth|cookie|credentials?|(?:api)?key|password|secret|token)$/iu.test(
    name,
  );

/** Returns a key without surrounding spaces. Headers cannot hold line breaks or the typographic quotes of a word processor. */
const checkedKey = (
  code: 'auth' | 'config',
  { vendor, keyVariables }: AccessSource,
  key: string,
): string => {
  const trimmed = key.trim();
  if (/^[\x20-\x7e]*$/u.test(trimmed)) return trimmed;
  const places = ["the option 'apiKey'", ...keyVariables].join(' or ');
  throw new MillraceError(
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

const headerOf = ({ keyHeader = 'authorization' }: AccessSource): string => keyHeader.toLowerCase();

const credentialsOf = (source: AccessSource, secret: string): Credentials => ({
  headers: { [headerOf(source)]: source.keyHeader === undefined ? `Bearer ${secret}` : secret },
  secret,
});

const credentialsBy = (source: AccessSource, key: ApiKey | undefined): Access['credentials'] => {
  if (typeof key === 'function') {
    return async () => credentialsOf(source, await keyFrom(source, key));
  }
  return key ? credentialsOf(source, key) : () => lateCredentials(source, key);
};

/** A file of variables may be loaded after the model is created. An option that is empty has none to wait for. */
const lateCredentials = async (
  source: AccessSource,
  given: string | undefined,
): Promise<Credentials> => {
  const key = given ?? keyIn(source);
  if (key) return credentialsOf(source, checkedKey('config', source, key));
  const { keyMissing } = await import('./key-errors.js');
  throw keyMissing(source.vendor, source.keyVariables);
};

const keyFrom = async (source: AccessSource, key: Exclude<ApiKey, string>): Promise<string> => {
  const given: unknown = await Promise.resolve()
    .then(key)
    .catch(() => undefined);
  const found = typeof given === 'string' ? checkedKey('auth', source, given) : '';
  if (found) return found;
  const { noKeyReturned } = await import('./key-errors.js');
  throw noKeyReturned(inSentence(source.vendor));
};
