import { MillraceError } from 'millrace';
import { variable } from './environment.js';

/** The sources of a vendor's base URL. */
export interface AddressSource {
  /** The name of the vendor in errors. */
  readonly vendor: string;
  /** The default. Without one, the option or the variable is required. */
  readonly baseURL?: string | undefined;
  /** The environment variable that overrides `baseURL`. */
  readonly baseURLVariable?: string | undefined;
  /** An example for errors. */
  readonly exampleUrl: string;
}

/**
 * Returns the base URL of a vendor, without a trailing slash: the given one, else its variable, else its default.
 * Throws a `MillraceError` (`config`) with a fix if it is missing, is not an HTTP URL, or contains credentials or a
 * query.
 */
export const addressOf = (source: AddressSource, given: string | undefined): string => {
  const { baseURLVariable } = source;
  const vendor = inSentence(source.vendor);
  const address = given ?? variable(baseURLVariable) ?? source.baseURL;
  const byVariable = baseURLVariable === undefined ? '' : `set ${baseURLVariable}, or `;
  const fix = `${byVariable}pass the option 'baseURL', such as '${source.exampleUrl}'`;
  if (address === undefined) throw configError(`${source.vendor} needs a base URL: ${fix}.`);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/u.test(url.protocol)) {
    throw configError(
      host.test(address)
        ? `The base URL of ${vendor}, '${address}', is not an HTTP URL: use 'http://${address}' or 'https://${address}'.`
        : `The base URL of ${vendor} is not an HTTP URL: ${fix}.`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw configError(
      `The base URL of ${vendor} contains a user name or password: pass the option 'headers' instead.`,
    );
  }
  if (url.search !== '' || url.hash !== '') {
    throw configError(`The base URL of ${vendor} contains a query or fragment: remove it.`);
  }
  return address.trim().replace(/\/+$/u, '');
};

/** A host with a port or a domain, and perhaps a path. No key or password looks like this, so it may be shown. */
const host =
  /^(?:localhost|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24}|(?:[\w.-]+)(?=:\d))(?::\d{1,5})?(?:\/[\w./-]{0,100})?$/iu;

const configError = (message: string): MillraceError => new MillraceError('config', message);

/** Formats the name of a vendor for the middle of a sentence: it may be `The server at 127.0.0.1:11434`. */
export const inSentence = (vendor: string): string => vendor.replace(/^The /u, 'the ');
