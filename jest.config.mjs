import { bundle } from './scripts/test/bundle.mjs';
import { chosenTiers } from './scripts/test/tiers.mjs';
import { root } from './scripts/workspaces.mjs';

// The bundles are not written again while Jest watches, and a report on coverage is about sources.
const isBundled = !process.argv.some((arg) => /^--(watch|coverage|collectCoverage)/.test(arg));

const project = async ({ name, layer, accepts, skips = [] }) => ({
  rootDir: root,
  roots: ['packages', 'examples', 'scripts'].map((folder) => `<rootDir>/${folder}`),
  testEnvironment: 'node',
  ...(name !== undefined && { displayName: name }),
  testRegex: accepts,
  testPathIgnorePatterns: ['/node_modules/', '/dist/', ...skips],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '<rootDir>/scripts/test/transform.mjs' },
  ...(isBundled && { resolver: await bundle(layer) }),
  globals: { MILLRACE_LAYER: layer },
  moduleNameMapper: {
    ...(layer !== undefined && {
      '^(\\.{1,2}/.*|\\.)/layer\\.js$': '<rootDir>/scripts/test/layered.mjs',
    }),
    '^fast-check$': '<rootDir>/scripts/test/fast-check.mjs',
    '^millrace$': '<rootDir>/packages/cli/src/index.ts',
    '^@millrace/([^/]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^@millrace/([^/]+)/([^/]+)$': '<rootDir>/packages/$1/src/$2/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
});

const projects = [];
for (const tier of chosenTiers()) projects.push(await project(tier));

export default {
  projects,
  // A test that hangs fails; a busy machine does not fail a test.
  testTimeout: 180_000,
  // Modules of tests that have ended stay in memory.
  workerIdleMemoryLimit: '1GB',
  maxWorkers: '100%',
  testSequencer: '<rootDir>/scripts/test/sequencer.mjs',
  // Of `it.concurrent`, for tests that mostly wait for a server.
  maxConcurrency: 12,
};
