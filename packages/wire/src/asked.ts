const addresses = new WeakMap<object, URL>();

/**
 * Remembers which address a response, told by its headers, or an error came from. That is kept beside them, because
 * an SDK hands on nothing else of a request.
 */
export const noteAddress = (about: unknown, address: string): void => {
  if (typeof about !== 'object' || about === null || addresses.has(about)) return;
  if (URL.canParse(address)) addresses.set(about, new URL(address));
};

/** Gives the address that headers or an error came from, as far as it was noted. */
export const askedAddress = (about: unknown): URL | undefined =>
  typeof about === 'object' && about !== null ? addresses.get(about) : undefined;
