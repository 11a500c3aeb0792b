/** @jest-config-loader-options {"transpileOnly": true} */
/* eslint-disable @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-call -- the scripts have no types */
import type { Config } from 'jest';

// The bundles are not written again while Jest watches, and a report on coverage is about sources.
const isBundled = !process.argv.some((arg) => /^--(watch|coverage|collectCoverage)/.test(arg));

/** Which files run is in scripts/test/kinds.mjs; `MILLRACE_LAYER` adds a layer to every agent. */
const config = async (): Promise<Config> => {
  await import('./scripts/test/runs.mjs');
  const { bundle } = await import('./scripts/test/bundle.mjs');
  const { chosenFiles } = await import('./scripts/test/kinds.mjs');
  const layer = process.env.MILLRACE_LAYER;
  return {
    // Scripts run in the root. Node 22 and later load this file as a module, which has no `__dirname`.
    rootDir: process.cwd(),
    roots: ['packages', 'conformance', 'bench', 'examples', 'scripts'].map(
      (folder) => `<rootDir>/${folder}`,
    ),
    testEnvironment: '<rootDir>/scripts/test/environment.cjs',
    testRegex: chosenFiles(process.env),
    testPathIgnorePatterns: ['/node_modules/', '/dist/'],
    extensionsToTreatAsEsm: ['.ts', '.tsx'],
    // With "isolatedModules" in tsconfig.json ts-jest only strips the types; `tsc -b` has checked them before.
    transform: { '^.+\\.tsx?$': ['ts-jest', { useESM: true }] },
    ...(isBundled && { resolver: await bundle(layer) }),
    globals: { MILLRACE_LAYER: layer },
    moduleNameMapper: {
      ...(layer !== undefined && {
        '^(\\.{1,2}/.*|\\.)/read-use\\.js$': '<rootDir>/scripts/test/layered.mjs',
      }),
      '^fast-check$': '<rootDir>/scripts/test/fast-check.mjs',
      '^create-millrace$': '<rootDir>/packages/create-millrace/src/index.ts',
      '^millrace$': '<rootDir>/packages/millrace/src/index.ts',
      '^millrace/([^/.]+)$': [
        '<rootDir>/packages/millrace/src/$1/index.ts',
        '<rootDir>/packages/millrace/src/layers/$1/index.ts',
      ],
      '^@millrace/([^/]+)$': [
        '<rootDir>/packages/$1/src/index.ts',
        '<rootDir>/conformance/$1/src/index.ts',
      ],
      '^@millrace/([^/]+)/([^/.]+)$': '<rootDir>/packages/$1/src/$2/index.ts',
      '^(\\.{1,2}/.*)\\.js$': '$1',
    },
    // A test that hangs fails; a busy machine does not fail a test.
    testTimeout: 180_000,
    // Modules of tests that have ended stay in memory.
    workerIdleMemoryLimit: '1GB',
    maxWorkers: '100%',
    // A worker with much memory takes longer than half a second to exit on a busy machine; one with an open handle never exits.
    workerGracefulExitTimeout: 20_000,
    testSequencer: '<rootDir>/scripts/test/sequencer.mjs',
    // Of `it.concurrent`, for tests that mostly wait for a server.
    maxConcurrency: 12,
  };
};

export default config;
