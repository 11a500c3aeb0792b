// Lets programs import modules by the names that these had before: `node --import ./scripts/former-names.mjs program.mjs`.
import Module, { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Former names of modules, with the modules of today that have what they exported. */
export const formerNames = {
  '@millrace/core/search': ['@millrace/core/retrieval', '@millrace/core/values'],
  '@millrace/core/text-tools': ['@millrace/text-tools'],
  '@millrace/dialects': ['@millrace/text-tools'],
  '@millrace/flow': ['@millrace/flow', '@millrace/flow/ragflow'],
  '@millrace/guards': ['@millrace/core/guards'],
  '@millrace/memory': ['@millrace/core/long-term-memory'],
  '@millrace/reactive': ['@millrace/gateway'],
  '@millrace/retrieval': ['@millrace/retrieval', '@millrace/core/retrieval'],
  '@millrace/tools/mail': ['@millrace/tools-extra'],
  '@millrace/tools/search-web': ['@millrace/tools-extra'],
  '@millrace/tools/services': ['@millrace/tools-extra'],
};

const require = createRequire(import.meta.url);
const scheme = 'former-names:';
const packages = new URL('../packages/', import.meta.url).href;

/** The files of modules that exist and had more: programs may import them by URL. */
const files = new Map(
  Object.entries(formerNames)
    .filter(([name, modules]) => modules.includes(name))
    .map(([name]) => [pathToFileURL(require.resolve(name)).href, name]),
);

/** The hooks: Node calls them for each import. What the packages themselves import has its name of today. */
export const resolve = (specifier, context, nextResolve) => {
  const { parentURL = '' } = context;
  if (parentURL.startsWith(scheme)) {
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
  const name = files.get(specifier) ?? specifier;
  if (!Object.hasOwn(formerNames, name) || parentURL.startsWith(packages)) {
    return nextResolve(specifier, context);
  }
  return { url: `${scheme}${name}`, format: 'module', shortCircuit: true };
};

export const load = (url, context, nextLoad) => {
  if (!url.startsWith(scheme)) return nextLoad(url, context);
  const modules = formerNames[url.slice(scheme.length)];
  const source = modules.map((name) => `export * from '${name}';`).join('\n');
  return { format: 'module', source, shortCircuit: true };
};

// Hooks are loaded from this file again, in a thread of their own.
if (!import.meta.url.endsWith('?hooks')) {
  register(`${import.meta.url}?hooks`);
  const { _resolveFilename: resolveToday } = Module;
  // Of several modules, `require.resolve` finds the first.
  Module._resolveFilename = (name, ...rest) =>
    resolveToday(formerNames[name]?.[0] ?? name, ...rest);
}
