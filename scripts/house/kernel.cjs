/** Where the kernel starts, and which features it must not import. Used by scripts/house.mjs and .dependency-cruiser.cjs. */
const core = 'packages/core/src';

/** The module that a call starts from. */
const entry = `${core}/agent.ts`;

/** The features, each with its folders and files: where they are today, and where the restructuring puts them. */
const features = {
  approval: ['approval', 'tools/approval'],
  composition: ['compose', 'consult', 'with-own-tools'],
  events: ['streams/(?:bounded|event-operators)'],
  fitting: ['fitting', 'context-window'],
  guards: ['guards', 'interceptors'],
  interrupts: ['interrupts', 'interrupt-on'],
  journal: ['journal'],
  'long-term-memory': ['long-term-memory'],
  memories: ['memories'],
  models: ['models/(?:answer-tool|retry)'],
  output: ['output'],
  planning: ['planning'],
  presets: ['presets'],
  retrieval: ['retrieval'],
  schema: ['schema(?=/)'],
  sessions: ['sessions', 'session', 'session-[^/]+', 'seats', 'arrivals', 'join', 'steering'],
  suspension: ['suspension', 'tools/suspend'],
  teams: ['teams'],
  'text-tools': ['text-tools'],
  'tool-selection': [
    'tool-selection',
    'tools/(?:select-tools|[^/]+-selector|manage-tools|tool-group)',
  ],
  tools: ['tools/(?:preset|tool-method)', 'near-matches'],
  traffic: ['traffic', 'limit-rate', 'limit-concurrency', 'budget'],
};

const pattern = (names) => `^${core}/(?:${names.join('|')})(?:/|\\.ts$)`;

/** A pattern for the files of each feature. */
const featureFiles = Object.fromEntries(
  Object.entries(features).map(([feature, names]) => [feature, pattern(names)]),
);

/** A pattern for the files of all features. */
const anyFeature = pattern(Object.values(features).flat());

/** Kernel files: all of core except features, entry points, tests and test tools. */
const kernel = {
  path: `^${core}/`,
  pathNot: [
    anyFeature,
    `^${core}/(?:adapter|testing)/`,
    '/index\\.ts$',
    '\\.test(-d|-support)?\\.ts$',
  ],
};

/** Words that only features use. */
const featureWords = /journal|session|queue|steer|budget|approv|suspen|planning|retriev/gi;

module.exports = { entry, featureFiles, anyFeature, featureWords, kernel };
