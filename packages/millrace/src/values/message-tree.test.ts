import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { addedSince, type Entry, grown } from './message-tree.js';

const step = fc.record({
  from: fc.nat(30),
  cut: fc.nat(4),
  add: fc.nat(3),
  isCopied: fc.boolean(),
});

describe('S4: lists of entries that grow', () => {
  it('know what was added to a former list, and that another list is unrelated', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let made = 0;
        const lists: (readonly Entry[])[] = [[]];
        for (const { from, cut, add, isCopied } of steps) {
          const list = lists[from % lists.length] ?? [];
          // Several may grow from the same list, and some lose their last entries first.
          const kept = cut === 0 ? list.slice(0, -1) : isCopied ? [...list] : list;
          const added = Array.from({ length: add }, (): Entry => {
            made += 1;
            return { message: { id: `m${made}`, role: 'user', content: [] }, after: null };
          });
          lists.push(grown(kept, added));
        }
        for (const former of lists) {
          for (const list of lists) {
            const isBeginning = former.every((entry, at) => entry === list[at]);
            expect(addedSince(former, list)).toEqual(
              isBeginning ? list.slice(former.length) : undefined,
            );
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
