import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createKeywordIndex, scoresByWords } from './in-process-long-term-memory.js';

interface Item {
  readonly text: string;
}

const indexOf = (items: readonly Item[]) => {
  const index = createKeywordIndex<Item>();
  items.forEach((item) => index.add(item, item.text));
  return index;
};

const words = fc.array(fc.constantFrom('tea', 'milk', 'mill', '水車', 'the'), { maxLength: 6 });
const items = fc.array(
  words.map((all) => ({ text: all.join(' ') })),
  { maxLength: 8 },
);

describe('scoresByWords', () => {
  it('G3: is BM25', () => {
    const [a, b, c] = [{ text: 'tea milk' }, { text: 'tea tea tea' }, { text: 'mill' }];
    const weight = (df: number) => Math.log(1 + (3 - df + 0.5) / (df + 0.5));
    const part = (count: number, length: number) =>
      (count * 2.2) / (count + 1.2 * (0.25 + (0.75 * length) / 2));
    const scores = scoresByWords([indexOf([a, b, c])], ['tea', 'milk', 'tea', 'nothing']);
    expect(scores.get(a)).toBeCloseTo(weight(2) * part(1, 2) + weight(1) * part(1, 2));
    expect(scores.get(b)).toBeCloseTo(weight(2) * part(3, 3));
    expect(scores.has(c)).toBe(false);
  });

  it('G3: of what was removed nothing is left', () => {
    fc.assert(
      fc.property(items, items, (kept, removed) => {
        const index = indexOf([...kept, ...removed]);
        removed.forEach((item) => index.remove(item, item.text));
        const fresh = indexOf(kept);
        const terms = ['tea', 'milk', 'mill', '水車'];
        expect([index.size, index.length]).toEqual([fresh.size, fresh.length]);
        expect(scoresByWords([index], terms)).toEqual(scoresByWords([fresh], terms));
      }),
    );
  });

  it('G3: of several indexes is as of one that holds all', () => {
    fc.assert(
      fc.property(items, items, (some, others) => {
        const terms = ['tea', 'milk', 'mill', '水車'];
        const apart = scoresByWords([indexOf(some), indexOf(others)], terms);
        const together = scoresByWords([indexOf([...some, ...others])], terms);
        for (const item of [...some, ...others]) {
          expect(apart.get(item) ?? 0).toBeCloseTo(together.get(item) ?? 0);
        }
      }),
    );
  });
});
