import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inRound, measureRounds, medianOf, type Outcome, ratiosOf } from './outcomes.js';

const subjects = ['floor', 'one', 'two'].map((name) => ({ name, floor: 'floor' }));

describe('measureRounds', () => {
  it('measures all in each round, in other orders, and one that fails no more', async () => {
    const progress: string[] = [];
    const onProgress = (what: string): void => {
      progress.push(what);
    };
    const results = new Map([
      ['floor', [1, 2, 3]],
      ['one', [4]],
      ['two', [5, 6, 7]],
    ]);
    const outcomes = await measureRounds(
      { adapters: subjects, rounds: 3, onProgress },
      'x',
      ({ name }) => {
        const next = results.get(name)?.shift();
        return next === undefined ? Promise.reject(new Error('No.')) : Promise.resolve(next);
      },
    );
    expect(outcomes).toEqual([
      { adapter: subjects[0], rounds: [1, 2, 3] },
      { adapter: subjects[1], rounds: [4], failure: 'No.' },
      { adapter: subjects[2], rounds: [5, 6, 7] },
    ]);
    expect(progress).toEqual([
      ...['floor', 'one', 'two'].map((name) => `x, round 1 of 3: ${name}`),
      ...['floor', 'two', 'one'].map((name) => `x, round 2 of 3: ${name}`),
      ...['two', 'floor'].map((name) => `x, round 3 of 3: ${name}`),
    ]);
  });
});

describe('inRound', () => {
  it('leaves none out, and lets each begin', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.nat(20), (all, round) => {
        expect(inRound(all, round).toSorted()).toEqual(all.toSorted());
      }),
    );
    const rounds = [0, 1, 2].map((round) => inRound(['a', 'b', 'c'], round));
    expect(rounds.map((round) => round.join(''))).toEqual(['abc', 'acb', 'cab']);
    expect(inRound([], 1)).toEqual([]);
  });
});

describe('ratiosOf', () => {
  const outcome = (name: string, rounds: readonly number[], failure?: string): Outcome<number> => ({
    adapter: { name, floor: 'floor' },
    rounds,
    ...(failure && { failure }),
  });
  const same = (value: number): number => value;

  it('divides by the floor of the same round', () => {
    const one = outcome('one', [4, 9, 5]);
    expect(ratiosOf(one, [outcome('floor', [2, 3, 5]), one], same)).toEqual([2, 3, 1]);
    expect(medianOf(one, same)).toBe(5);
  });

  it('gives none if the floor has failed, or is not there', () => {
    const one = outcome('one', [4, 9]);
    expect(ratiosOf(one, [outcome('floor', [2], 'No.'), one], same)).toEqual([]);
    expect(ratiosOf(one, [one], same)).toEqual([]);
  });
});
