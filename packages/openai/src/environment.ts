/** The variable of an environment, trimmed; `undefined` where it is absent or empty. */
export const variable = (name: string | undefined): string | undefined => {
  const value = name === undefined ? undefined : process.env[name]?.trim();
  return value === '' ? undefined : value;
};

/** The headers of `OPENAI_CUSTOM_HEADERS`, which the SDK adds to whatever it sends. */
export const customHeaders = (): readonly (readonly [name: string, value: string])[] =>
  (variable('OPENAI_CUSTOM_HEADERS') ?? '').split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon < 1 ? [] : [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
  });
