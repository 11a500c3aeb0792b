import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { splitConversation } from './split-conversation.js';

/** Cuts a conversation in which turns of the user begin at these places. */
const cuts = (length: number, ...places: readonly number[]) =>
  splitConversation(length, (at) => places.includes(at));

describe('cutsOf', () => {
  it('leaves open the last two turns of the user, and what is after them', () => {
    expect([0, 1, 2, 5].map((length) => cuts(length, 2, 4).open)).toEqual([0, 0, 0, 2]);
    expect(cuts(9, 2, 4, 8)).toEqual({ pages: [], open: 4 });
    expect(cuts(9)).toEqual({ pages: [], open: 0 });
  });

  it('ends a page at the first turn after sixteen messages', () => {
    const odd = Array.from({ length: 50 }, (_, index) => 2 * index + 1);
    expect(cuts(100, ...odd)).toEqual({ pages: [17, 33, 49, 65, 81, 97], open: 97 });
    expect(cuts(100, 16, 40, 41, 90, 95)).toEqual({ pages: [16, 40, 90], open: 90 });
  });

  it('X16: cuts where turns begin, and in the same places when more follows', () => {
    const places = fc.uniqueArray(fc.integer({ min: 1, max: 120 }), { maxLength: 60 });
    fc.assert(
      fc.property(places, fc.nat({ max: 120 }), fc.nat({ max: 40 }), (begins, length, more) => {
        const within = begins.filter((at) => at < length);
        const { pages, open } = cuts(length, ...within);
        expect([...pages, open].every((at) => at === 0 || within.includes(at))).toBe(true);
        expect(within.filter((at) => at >= open).length).toBe(Math.min(2, within.length));
        const later = cuts(length + more, ...begins.filter((at) => at < length + more));
        expect(later.pages.slice(0, pages.length)).toEqual(pages);
      }),
    );
  });
});
