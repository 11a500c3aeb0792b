const addresses = new WeakMap<object, string>();

/**
 * Records the URL that the headers of a response, or an error, came from: an SDK passes on nothing else of a request.
 * The first URL counts. A response that was constructed by hand has an empty one, which is not recorded.
 */
export const recordAddress = (about: unknown, address: string): void => {
  if (typeof about !== 'object' || about === null || address === '') return;
  if (!addresses.has(about)) addresses.set(about, address);
};

/** Returns the recorded URL of headers or an error. */
export const recordedAddress = (about: unknown): URL | undefined => {
  const address = typeof about === 'object' && about !== null ? addresses.get(about) : undefined;
  return address !== undefined && URL.canParse(address) ? new URL(address) : undefined;
};
