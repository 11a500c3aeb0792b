import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from '../workspaces.mjs';
import { failuresOf } from './failures.mjs';

const report = (assertionResults, message = '') => ({
  testResults: [{ name: join(root, 'packages/mill/wheel.test.ts'), message, assertionResults }],
});

const failed = (text) => ({
  status: 'failed',
  fullName: "M1: the wheel's turns (x.y)",
  failureMessages: [text],
});

it('prints the command that repeats a counterexample', () => {
  const message = 'Property failed after 1 tests\n{ seed: -7, path: "3:1:0", endOnFailure: true }';
  expect(failuresOf(report([failed(message), { status: 'passed' }]))).toEqual([
    "packages/mill/wheel.test.ts: M1: the wheel's turns (x.y)\n" +
      "  npm run fuzz -- packages/mill/wheel.test.ts -t 'M1: the wheel'\\''s turns \\(x\\.y\\)' --repeat=-7/3:1:0",
  ]);
});

it('prints the test and its error if it is no property, and the first lines if the file does not load', () => {
  expect(failuresOf(report([failed('expected 1')]))).toEqual([
    "packages/mill/wheel.test.ts: M1: the wheel's turns (x.y)\n  expected 1\n" +
      "  npm test -- packages/mill/wheel.test.ts -t 'M1: the wheel'\\''s turns \\(x\\.y\\)'",
  ]);
  expect(failuresOf(report([], '\n  Cannot find it\n at x'))).toEqual([
    'packages/mill/wheel.test.ts: Cannot find it\n  at x',
  ]);
});
