import { describe, expect, it } from '@jest/globals';
import { rows } from '../compat/embedding.mjs';

describe('a chat server within another web server', () => {
  it('streams, cancels, takes uploads, refuses other sites, leaves other routes alone and serves its page', async () => {
    const results = await rows();
    expect(results.filter(({ problem, skipped }) => (problem ?? skipped) !== undefined)).toEqual(
      [],
    );
    expect(results.length).toBeGreaterThan(90);
  }, 600_000);
});
