/** @jest-config-loader-options {"transpileOnly": true} */
/* eslint-disable @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-argument -- the scripts have no types */
import type { Config } from 'jest';

interface Tier {
  readonly name?: string;
  readonly layer?: string;
  readonly accepts: string[];
  readonly skips?: readonly string[];
}

// The bundles are not written again while Jest watches, and a report on coverage is about sources.
const isBundled = !process.argv.some((arg) => /^--(watch|coverage|collectCoverage)/.test(arg));

/** Each tier of scripts/test/tiers.mjs is a project. */
const config = async (): Promise<Config> => {
  const { bundle } = await import('./scripts/test/bundle.mjs');
  const { chosenTiers } = await import('./scripts/test/tiers.mjs');
  const project = async ({ name, layer, accepts, skips = [] }: Tier) => ({
    // Scripts run in the root. Node 22 and later load this file as a module, which has no `__dirname`.
    rootDir: process.cwd(),
    roots: ['packages', 'conformance', 'bench', 'examples', 'scripts'].map(
      (folder) => `<rootDir>/${folder}`,
    ),
    testEnvironment: '<rootDir>/scripts/test/environment.cjs',
    ...(name !== undefined && { displayName: name }),
    testRegex: accepts,
    testPathIgnorePatterns: ['/node_modules/', '/dist/', ...skips],
    extensionsToTreatAsEsm: ['.ts'],
    // With "isolatedModules" in tsconfig.json ts-jest only strips the types; `tsc -b` has checked them before.
    transform: { '^.+\\.ts$': ['ts-jest', { useESM: true }] },
    ...(isBundled && { resolver: await bundle(layer) }),
    globals: { MILLRACE_LAYER: layer },
    moduleNameMapper: {
      ...(layer !== undefined && {
        '^(\\.{1,2}/.*|\\.)/layer\\.js$': '<rootDir>/scripts/test/layered.mjs',
      }),
      '^fast-check$': '<rootDir>/scripts/test/fast-check.mjs',
      '^create-millrace$': '<rootDir>/packages/create-millrace/src/index.ts',
      '^millrace$': '<rootDir>/packages/cli/src/index.ts',
      '^millrace/([^/.]+)$': '<rootDir>/packages/cli/src/$1.ts',
      '^@millrace/([^/]+)$': [
        '<rootDir>/packages/$1/src/index.ts',
        '<rootDir>/conformance/$1/src/index.ts',
      ],
      '^@millrace/([^/]+)/([^/.]+)$': [
        '<rootDir>/packages/$1/src/$2/index.ts',
        '<rootDir>/packages/$1/src/layers/$2/index.ts',
      ],
      '^(\\.{1,2}/.*)\\.js$': '$1',
    },
  });
  const projects: Config['projects'] = [];
  for (const tier of chosenTiers()) projects.push(await project(tier));
  return {
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
};

export default config;
