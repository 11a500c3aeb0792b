const { join } = require('node:path');

const bench = join(module.path, '../../bench');

/** Makes a resolver for Jest that lets tests import what scripts/test/bundle.mjs has bundled. */
module.exports = (replacements) => (name, options) => {
  // A CommonJS module cannot import the bundles, which are ES modules. The bench looks for what lies beside the sources.
  if (!options.conditions?.includes('import') || options.basedir.startsWith(bench)) {
    return options.defaultResolver(name, options);
  }
  if (Object.hasOwn(replacements, name)) return replacements[name];
  const path = options.defaultResolver(name, options);
  return replacements[path] ?? path;
};
