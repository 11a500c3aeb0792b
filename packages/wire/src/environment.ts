/** A header of a request. */
export type Header = readonly [name: string, value: string];

/** Reads a variable of the environment, trimmed; `undefined` where it is absent or empty. */
export const variable = (name: string | undefined): string | undefined => {
  const value = name === undefined ? undefined : process.env[name]?.trim();
  return value === '' ? undefined : value;
};

/** Reads a variable that holds headers, one a line, as the vendors' SDKs read theirs. */
export const headersIn = (name: string | undefined): readonly Header[] =>
  (variable(name) ?? '').split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon < 1 ? [] : [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
  });
