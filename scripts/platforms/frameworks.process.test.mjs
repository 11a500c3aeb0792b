import { expect, it } from '@jest/globals';
import { rows } from '../compat/frameworks.mjs';

it('every example of a framework compiles, streams, and aborts the request of a client that leaves', async () => {
  const results = await rows();
  expect(results.filter(({ problem, skipped }) => (problem ?? skipped) !== undefined)).toEqual([]);
  expect(results.length).toBeGreaterThan(5);
}, 600_000);
