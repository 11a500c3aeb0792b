import { describe, it } from '@jest/globals';
import fc from 'fast-check';
import { clients } from './clients.js';
import { playScript } from './script.js';

const step = fc.record({
  tab: fc.nat(2),
  act: fc.constantFrom('ask', 'ask', 'regenerate', 'edit', 'show', 'reload', 'restart' as const),
  pick: fc.nat(4),
  isHurried: fc.boolean(),
});

const shown = clients.filter(({ keepsBranches }) => keepsBranches !== true);
const [first] = shown;

describe('tabs of several clients on one conversation', () => {
  it.each(['process', 'files'] as const)(
    'lose no turn, and the model reads what each one shows: %s',
    async (keeping) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), (steps) =>
          playScript(first === undefined ? [] : [...shown, first], keeping, steps),
        ),
        { numRuns: 12 },
      );
    },
    60_000,
  );
});
