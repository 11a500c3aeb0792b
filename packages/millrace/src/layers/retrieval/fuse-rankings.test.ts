import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fuseRankings } from './meaning-index.js';

const items = (rankings: readonly (readonly string[])[]): string =>
  fuseRankings(rankings)
    .map(({ item }) => item)
    .join('');

const ranking = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 20 });
const rankings = fc.array(ranking, { maxLength: 4 });

describe('fuseRankings', () => {
  it.each([
    [[], ''],
    [['', ''], ''],
    [['abc'], 'abc'],
    [['abc', ''], 'abc'],
    [['abc', 'abc'], 'abc'],
    [['ab', 'ba'], 'ab'],
    [['ab', 'cd'], 'acbd'],
    [['abc', 'cd'], 'cabd'],
    [['aab', 'b'], 'ba'],
  ])('R7: of %j makes %s', (given, fused) => {
    expect(items(given.map((it) => it.split('')))).toBe(fused);
  });

  it('R7: counts 1 / (60 + place) in each', () => {
    expect(fuseRankings([['a', 'b'], ['b']])).toEqual([
      { item: 'b', score: 1 / 62 + 1 / 61 },
      { item: 'a', score: 1 / 61 },
    ]);
  });

  it('R7: holds each item once, the better score first', () => {
    fc.assert(
      fc.property(rankings, (given) => {
        const fused = fuseRankings(given);
        expect(new Set(fused.map(({ item }) => item))).toEqual(new Set(given.flat()));
        expect(fused).toHaveLength(new Set(given.flat()).size);
        const scores = fused.map(({ score }) => score);
        expect(scores).toEqual([...scores].sort((a, b) => b - a));
      }),
    );
  });

  it('R7: what is ahead in every ranking is ahead', () => {
    fc.assert(
      fc.property(rankings, (given) => {
        const fused = fuseRankings(given).map(({ item }) => item);
        for (const [at, better] of fused.entries()) {
          for (const worse of fused.slice(at + 1)) {
            const isBehind = given.every((it) => placeIn(it, worse) <= placeIn(it, better));
            const isEqual = given.every((it) => placeIn(it, worse) === placeIn(it, better));
            expect(isBehind && !isEqual).toBe(false);
          }
        }
      }),
    );
  });

  it('R7: the scores do not depend on which ranking is named first', () => {
    fc.assert(
      fc.property(ranking, ranking, (a, b) => {
        const scores = (given: readonly (readonly number[])[]) =>
          new Map(fuseRankings(given).map(({ item, score }) => [item, score]));
        expect(scores([a, b])).toEqual(scores([b, a]));
      }),
    );
  });

  it('R7: what is added after a ranking does not move those before it', () => {
    fc.assert(
      fc.property(ranking, ranking, (a, b) => {
        const order = (given: readonly (readonly number[])[]) =>
          fuseRankings(given)
            .map(({ item }) => item)
            .filter((item) => item !== 99);
        expect(order([a, [...b, 99]])).toEqual(order([a, b]));
      }),
    );
  });
});

/** From 0 on; what is missing stands behind everything. */
const placeIn = (given: readonly number[], item: number): number => {
  const place = given.indexOf(item);
  return place === -1 ? Infinity : place;
};
