/** Makes a resolver for Jest that lets tests import what scripts/test/bundle.mjs has bundled. */
module.exports = (replacements) => (name, options) => {
  // A CommonJS module cannot import the bundles, which are ES modules.
  if (!options.conditions?.includes('import')) return options.defaultResolver(name, options);
  if (Object.hasOwn(replacements, name)) return replacements[name];
  const path = options.defaultResolver(name, options);
  return replacements[path] ?? path;
};
