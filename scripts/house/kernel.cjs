/** Where the kernel starts, and which features it must not import. Used by scripts/house.mjs and .dependency-cruiser.cjs. */
const core = 'packages/millrace/src';

/** The module that a call starts from. */
const entry = `${core}/agent.ts`;

/** What is no part of the kernel, though some of it lies in a room of the kernel: by name, folders and files. */
const features = {
  journal: ['journal'],
  layers: ['layers'],
  memories: ['memories'],
  models: ['models/(?:answer-tool|count-request|estimate-tokens|fit-messages|retry|token-counter)'],
  operators: ['operators'],
  phases: ['phases/consult'],
  schema: ['schema'],
  tools: ['tools/(?:preset|tool-group|tool-method)'],
};

const pattern = (names) => `^${core}/(?:${names.join('|')})(?:/|\\.ts$)`;

/** A pattern for the files of all features. */
const anyFeature = pattern(Object.values(features).flat());

/** Kernel files: all of core except features, entry points, tests and test tools. */
const kernel = {
  path: `^${core}/`,
  pathNot: [anyFeature, `^${core}/testing/`, '/index\\.ts$', '\\.test(-d|-support)?\\.ts$'],
};

module.exports = { entry, anyFeature, kernel };
