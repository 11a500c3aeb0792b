/** @jest-config-loader-options {"transpileOnly": true} */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: 'node',
  testMatch: [
    '<rootDir>/packages/*/src/**/*.test.ts',
    '<rootDir>/{examples,docs}/**/*.test.ts',
    '<rootDir>/scripts/**/*.test.mjs',
  ],
  extensionsToTreatAsEsm: ['.ts'],
  // With "isolatedModules" in tsconfig.json ts-jest only strips the types; `tsc -b` has checked them before.
  transform: { '^.+\\.ts$': ['ts-jest', { useESM: true }] },
  moduleNameMapper: {
    // With MILLRACE_LAYERS=pass or async, every agent of the suite has such a layer.
    ...(process.env['MILLRACE_LAYERS'] !== undefined && {
      '^(\\.{1,2}/.*|\\.)/layer\\.js$': '<rootDir>/scripts/test/layered.mjs',
    }),
    '^fast-check$': '<rootDir>/scripts/test/fast-check.mjs',
    '^millrace$': '<rootDir>/packages/cli/src/index.ts',
    '^@millrace/([^/]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^@millrace/([^/]+)/([^/]+)$': '<rootDir>/packages/$1/src/$2/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  // A test that hangs fails; a busy machine does not fail a test.
  testTimeout: 60_000,
  maxWorkers: '100%',
  // Of `it.concurrent`, for tests that mostly wait for a server.
  maxConcurrency: 12,
};

export default config;
