// Errors of requests without a key. They are loaded when one occurs.
import { MillraceError } from 'millrace';

export const keyMissing = (vendor: string, keyVariables: readonly string[]): MillraceError => {
  const [byVariable = ''] = keyVariables.map((name) => `set ${name}, or `);
  return new MillraceError(
    'config',
    `${vendor} needs a key: ${byVariable}pass the option 'apiKey'.`,
  );
};

/** It has no cause: the error of an `apiKey` function may contain a secret. */
export const noKeyReturned = (vendor: string): MillraceError =>
  new MillraceError('auth', `The 'apiKey' function for ${vendor} returned no key.`);
