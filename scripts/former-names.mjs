// Lets programs use the names that modules, functions and options had before: `node --import ./scripts/former-names.mjs program.mjs`.
import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** The entries of the framework, whose package was `@millrace/core`. */
const entries = [
  ...['call', 'fitting', 'guards', 'journal', 'long-term-memory', 'memories', 'phases', 'planning'],
  ...['retrieval', 'schema', 'sessions', 'teams', 'testing', 'traffic', 'values'],
];

/** Former names of modules, with the modules of today that have what they exported. */
export const formerNames = {
  '@millrace/core': ['millrace'],
  ...Object.fromEntries(entries.map((it) => [`@millrace/core/${it}`, [`millrace/${it}`]])),
  '@millrace/core/search': ['millrace/retrieval', 'millrace/values'],
  '@millrace/core/text-tools': ['@millrace/text-tools'],
  '@millrace/dialects': ['@millrace/text-tools'],
  '@millrace/flow': ['@millrace/flow', '@millrace/flow/ragflow'],
  '@millrace/guards': ['millrace/guards'],
  '@millrace/memory': ['millrace/long-term-memory'],
  '@millrace/reactive': ['@millrace/gateway'],
  '@millrace/retrieval': ['@millrace/tools/documents', 'millrace/retrieval'],
  '@millrace/tools/mail': ['@millrace/tools-extra'],
  '@millrace/tools/search-web': ['@millrace/tools-extra'],
  '@millrace/tools/services': ['@millrace/tools-extra'],
  millrace: [
    'millrace',
    '@millrace/store',
    ...['guards', 'journal', 'schema', 'sessions', 'teams'].map((it) => `millrace/${it}`),
  ],
  'millrace/anthropic': ['@millrace/anthropic'],
  'millrace/cli': ['@millrace/cli'],
  'millrace/demo-model': ['@millrace/demo-model'],
  'millrace/openai': ['@millrace/openai'],
};

/** Former names of options, with those of today, and the modules whose functions take them. */
export const formerOptions = {
  names: { baseUrl: 'baseURL', baseUrlVariable: 'baseURLVariable' },
  modules: [
    '@millrace/anthropic',
    '@millrace/openai',
    '@millrace/openai/embeddings',
    '@millrace/openai/media',
    '@millrace/tools-extra',
  ],
};

const require = createRequire(import.meta.url);
const scheme = 'former-names:';
const packages = new URL('../packages/', import.meta.url).href;

/** The modules of today that have more than they export: former functions, or former names of options. */
const extended = [
  ...formerOptions.modules,
  ...Object.keys(formerNames).filter((name) => formerNames[name].includes(name)),
];

/** Their files, which programs may import by URL. */
const extendedFiles = new Map(
  extended.map((name) => [pathToFileURL(require.resolve(name)).href, name]),
);

/** The hooks: Node calls them for each import. What the packages themselves import is of today. */
export const resolve = (specifier, context, nextResolve) => {
  const { parentURL = '', conditions } = context;
  // `_resolveFilename` below finds these.
  if (conditions.includes('require')) return nextResolve(specifier, context);
  if (parentURL.startsWith(scheme)) {
    const { from } = JSON.parse(decodeURIComponent(parentURL.slice(scheme.length)));
    return nextResolve(specifier, { ...context, parentURL: from });
  }
  const name = extendedFiles.get(specifier) ?? specifier;
  const isFormer = Object.hasOwn(formerNames, name) || extended.includes(name);
  if (!isFormer || parentURL.startsWith(packages)) return nextResolve(specifier, context);
  const module = JSON.stringify({ specifier: name, from: import.meta.url });
  return { url: `${scheme}${encodeURIComponent(module)}`, format: 'module', shortCircuit: true };
};

export const load = (url, context, nextLoad) => {
  if (!url.startsWith(scheme)) return nextLoad(url, context);
  const { specifier } = JSON.parse(decodeURIComponent(url.slice(scheme.length)));
  const modules = formerNames[specifier] ?? [specifier];
  const source = modules.map(reexported).join('\n');
  return { format: 'module', source, shortCircuit: true };
};

/** The source that exports a module; its functions take former options. */
const reexported = (name) => {
  if (!formerOptions.modules.includes(name)) return `export * from '${name}';`;
  return [
    `import * as today from '${name}';`,
    `import { takingFormerOptions } from '${import.meta.url.replace('?hooks', '?functions')}';`,
    `export * from '${name}';`,
    ...exportsOf(name).map((it) => `export const ${it} = takingFormerOptions(today.${it});`),
  ].join('\n');
};

/** The names that the main file of an entry of a package lists in `export { … }`. */
const exportsOf = (name) => {
  const source = readFileSync(require.resolve(name), 'utf8');
  return [...source.matchAll(/^export \{([^}]*)\}/gmu)].flatMap(([, list]) =>
    list.split(',').flatMap((it) => it.trim().split(' as ').at(-1) || []),
  );
};

const isPlain = (value) =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

const withNames = (value) =>
  isPlain(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, it]) => [formerOptions.names[key] ?? key, it]),
      )
    : value;

/** A function, and the functions that are its properties, that take options by their former names, too. */
export const takingFormerOptions = (today) => {
  if (typeof today !== 'function') return today;
  return new Proxy(today, {
    apply: (call, self, given) => Reflect.apply(call, self, given.map(withNames)),
    construct: (create, given, target) => Reflect.construct(create, given, target),
    get: (it, key) => {
      const value = Reflect.get(it, key);
      return key === 'prototype' ? value : takingFormerOptions(value);
    },
  });
};

if (!import.meta.url.includes('?')) {
  // Node 26 warns of `register`, which loads this file again, in a thread of its own. Node 20 has nothing else.
  if (Module.registerHooks === undefined) Module.register(`${import.meta.url}?hooks`);
  else Module.registerHooks({ resolve, load });
  const { _resolveFilename: resolveToday } = Module;
  // Of several modules, `require.resolve` finds the first.
  Module._resolveFilename = (name, ...rest) =>
    resolveToday(formerNames[name]?.[0] ?? name, ...rest);
}
