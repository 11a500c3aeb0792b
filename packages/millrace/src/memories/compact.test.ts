import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { of } from 'rxjs';
import { inProcessMemory } from './in-process-memory.js';
import { storeMemory } from '../phases/limit.js';
import { append, compact, startRun } from '../run.js';
import {
  add,
  answer,
  appendsOf,
  exchange,
  held,
  idsOf,
  someTurns,
  user,
} from './conversations.test-support.js';

describe('compact', () => {
  const history = [user('a/input/0'), ...exchange('a/1'), answer('a/2')];
  const recap = user('b/recap/1');

  it('L6: replaces the first messages, and takes those instead for stored', () => {
    const run = startRun(history, [user('b/input/0')]);
    const shorter = compact(run, 3, recap);
    expect(idsOf(shorter.messages)).toEqual(['b/recap/1', 'a/2', 'b/input/0']);
    expect(shorter.stored).toBe(2);
    expect(Object.isFrozen(shorter.messages)).toBe(true);
    expect(compact(run, 0)).toEqual(run);
    expect(idsOf(compact(run, 4).messages)).toEqual(['b/input/0']);
  });

  it.each([5, -1, 1.5, NaN])('L6: refuses to replace %d of 4 stored messages', (count) => {
    const run = startRun(history, [user('b/input/0')]);
    expect(() => compact(run, count, recap)).toThrow(
      /can replace up to 4 messages, those that memory has/,
    );
  });

  it('I8: memory gets what it would have got', () => {
    fc.assert(
      fc.property(someTurns, fc.nat(40), fc.nat(3), (turns, count, instead) => {
        const before = appendsOf(turns).flat();
        const others = Array.from({ length: instead }, (_, index) => user(`z/recap/${index}`));
        const stores = [true, false].map((isCompacted) => {
          const inner = inProcessMemory()('s');
          add(inner, ...before);
          const begun = startRun(held(inner), [user('z/input/0')]);
          const run = isCompacted
            ? compact(begun, Math.min(count, begun.stored), ...others)
            : begun;
          const next = append(run, ...exchange('z/1'));
          of(next)
            .pipe(storeMemory({ hooks: { report: () => undefined } }, { memory: inner }))
            .subscribe();
          return held(inner);
        });
        expect(stores[0]).toEqual(stores[1]);
      }),
    );
  });
});
