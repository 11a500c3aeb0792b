import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { toolIdsOf } from './tool-ids.js';

const accepted: readonly (readonly [provider: string, ids: RegExp])[] = [
  ['mistral.chat', /^[a-zA-Z0-9]{9}$/],
  ['openai.chat', /^[a-zA-Z0-9_-]{1,40}$/],
  ['openai.responses', /^[a-zA-Z0-9_-]{1,64}$/],
  ['anthropic.messages', /^[a-zA-Z0-9_-]{1,64}$/],
];

describe.each(accepted)('ids of tool calls for %s', (provider, ids) => {
  const anId = fc.oneof(
    fc.string({ minLength: 1, maxLength: 200 }),
    fc.stringMatching(/^[a-zA-Z0-9_-]{1,90}$/),
    fc.stringMatching(/^[a-zA-Z0-9]{9}$/),
  );

  it('are accepted, stay the same in each request, and stay apart', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anId, { maxLength: 40 }), (given) => {
        const sent = given.map(toolIdsOf(provider));
        for (const id of sent) expect(id).toMatch(ids);
        expect(new Set(sent).size).toBe(given.length);
        expect(given.map(toolIdsOf(provider))).toEqual(sent);
      }),
    );
  });

  it('stay as the vendor wrote them', () => {
    for (const id of ['aB3dE6gH9', 'call_aB3dE6gH9', 'toolu_01A09q90qw90lq917835lq9']) {
      if (ids.test(id)) expect(toolIdsOf(provider)(id)).toBe(id);
    }
  });
});
