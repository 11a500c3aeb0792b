export type Header = readonly [name: string, value: string];

/** Returns an environment variable, trimmed; `undefined` if it is unset or empty, or if there is no environment. */
export const variable = (name: string | undefined): string | undefined => {
  // Bundlers may define a `process` without `env`.
  if (name === undefined || typeof process === 'undefined' || !('env' in process)) return undefined;
  const value = process.env[name]?.trim();
  return value === '' ? undefined : value;
};

/** Parses an environment variable with one header per line, as the vendors' SDKs do. */
export const headersIn = (name: string | undefined): readonly Header[] =>
  (variable(name) ?? '').split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon < 1 ? [] : [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
  });
