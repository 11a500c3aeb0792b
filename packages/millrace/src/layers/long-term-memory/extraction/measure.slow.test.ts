import { describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { people } from './dialogues.test-support.js';
import { measured$ } from './measure.test-support.js';
import { ruleExtractor } from './rule-extractor.test-support.js';

const of = (half: 'tuned' | 'heldOut') => people.filter((it) => it.half === half);

describe('G7: the dialogues', () => {
  const tuned = lastValueFrom(measured$(of('tuned'), ruleExtractor()));

  it('leave facts that hold, without stale, crossed or injected ones, from the half that rules are written for', async () => {
    const score = await tuned;
    expect(score).toMatchObject({ wrong: [], missed: [], stale: 0, crossed: 0, failed: 0 });
    expect(score.stored.facts).toBeGreaterThan(40);
    expect(score.recalled.right).toBe(score.recalled.entries);
  });

  it('leave few wrong facts from the other half', async () => {
    const { stored, crossed, failed, stale, wrong } = await lastValueFrom(
      measured$(of('heldOut'), ruleExtractor()),
    );
    expect({ crossed, failed }).toEqual({ crossed: 0, failed: 0 });
    expect(stored.right / stored.entries).toBeGreaterThan(0.8);
    // The rules miss a change of diet; nothing comes from quotes, documents or orders.
    expect(stale).toBeLessThanOrEqual(1);
    expect(wrong.join()).not.toMatch(/admin|atlantis|moscow|faro|owner|millionaire/iu);
  });

  it('store less, and fewer wrong entries, than turns as they are', async () => {
    const turns = await lastValueFrom(measured$(of('tuned')));
    const facts = await tuned;
    expect(turns.stale).toBeGreaterThan(facts.stale);
    expect(turns.tokensStored).toBeGreaterThan(4 * facts.tokensStored);
    expect(turns.wrong.length).toBeGreaterThan(facts.wrong.length);
  });
});
