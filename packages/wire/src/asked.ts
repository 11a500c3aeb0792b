const addresses = new WeakMap<object, string>();

/**
 * Remembers which address a response, told by its headers, or an error came from. That is kept beside them, because
 * an SDK hands on nothing else of a request. The first one counts; a response that was made by hand has none.
 */
export const noteAddress = (about: unknown, address: string): void => {
  if (typeof about !== 'object' || about === null || address === '') return;
  if (!addresses.has(about)) addresses.set(about, address);
};

/** Gives the address that headers or an error came from, as far as it was noted. */
export const askedAddress = (about: unknown): URL | undefined => {
  const address = typeof about === 'object' && about !== null ? addresses.get(about) : undefined;
  return address !== undefined && URL.canParse(address) ? new URL(address) : undefined;
};
