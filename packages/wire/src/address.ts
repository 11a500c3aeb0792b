import { MillraceError } from '@millrace/core';
import { variable } from './environment.js';
import { inside } from './inside.js';

/** Where a vendor may be found. */
export interface AddressSource {
  /** What errors call the vendor. */
  readonly vendor: string;
  /** Its own address. Without one, the option or the variable must say it. */
  readonly baseUrl?: string | undefined;
  /** The environment variable that goes before `baseUrl`. */
  readonly baseUrlVariable?: string | undefined;
  /** What an address of it looks like, for errors. */
  readonly exampleUrl: string;
}

/**
 * Finds the address of a vendor: what is given, else its variable, else its own, without a slash at the end. Throws a
 * `MillraceError` (`config`) that says what to do where there is none, where it is not of HTTP, and where it holds a
 * password.
 */
export const addressOf = (source: AddressSource, given: string | undefined): string => {
  const { baseUrlVariable } = source;
  const vendor = inside(source.vendor);
  const address = given ?? variable(baseUrlVariable) ?? source.baseUrl;
  const byVariable = baseUrlVariable === undefined ? '' : `set ${baseUrlVariable}, or `;
  const fix = `${byVariable}pass the option 'baseUrl', such as '${source.exampleUrl}'`;
  if (address === undefined)
    throw misuse(`${source.vendor} needs the address of its server: ${fix}.`);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/u.test(url.protocol)) {
    throw misuse(
      host.test(address)
        ? `The address of ${vendor}, '${address}', is no http address: write 'http://${address}' or 'https://${address}'.`
        : `The address of ${vendor} is no http address: ${fix}.`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw misuse(
      `The address of ${vendor} holds a name and password: pass the option 'headers' instead.`,
    );
  }
  if (url.search !== '' || url.hash !== '') {
    throw misuse(
      `The address of ${vendor} holds a query or a fragment, which would end up in the path: leave out what follows '?' or '#'.`,
    );
  }
  return address.trim().replace(/\/+$/u, '');
};

/** A host with a port or a domain, perhaps with a path: nothing that a key or a password looks like. */
const host =
  /^(?:localhost|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24}|(?:[\w.-]+)(?=:\d))(?::\d{1,5})?(?:\/[\w./-]{0,100})?$/iu;

const misuse = (message: string): MillraceError => new MillraceError('config', message);
