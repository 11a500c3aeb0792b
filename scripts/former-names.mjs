// Lets programs import modules by the names that these had before: `node --import ./scripts/former-names.mjs program.mjs`.
import { register } from 'node:module';

/** Former names of modules, with those of today. */
export const formerNames = {
  '@millrace/core/text-tools': '@millrace/text-tools',
  '@millrace/dialects': '@millrace/text-tools',
};

/** The hook: Node calls it for each import. */
export const resolve = (specifier, context, nextResolve) =>
  nextResolve(Object.hasOwn(formerNames, specifier) ? formerNames[specifier] : specifier, context);

// Hooks are loaded from this file again, in a thread of their own.
if (!import.meta.url.endsWith('?hooks')) register(`${import.meta.url}?hooks`);
