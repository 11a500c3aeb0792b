import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createRepetition } from './repetition.js';

const part = fc.string({ unit: fc.constantFrom(' ', '\n', 'a', 'b'), maxLength: 3 });

describe('P10: a second answer', () => {
  it('P10: repeats the first one as long as it is its start, without the space around', () => {
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 5 }),
        fc.nat(10),
        fc.array(part, { maxLength: 4 }),
        (first, same, more) => {
          const answer = first.join('').trim();
          const repetition = createRepetition(first);
          let text = '';
          for (const piece of [` ${answer.slice(0, same)}`, ...more]) {
            text += piece;
            const isStart = answer.startsWith(text.trim());
            expect(repetition.push(piece)).toBe(isStart);
            expect(repetition.isWhole).toBe(answer !== '' && text.trim() === answer);
            if (!isStart) return;
          }
        },
      ),
    );
  });
});
