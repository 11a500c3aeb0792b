import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createLinkedList } from './admission-gate.js';

const step = fc.oneof(
  fc.constant('come' as const),
  fc.record({ leaves: fc.nat(12) }),
  fc.constant('first' as const),
);

describe('createLine', () => {
  it('C6: keeps the order, for any that leave, at any place and number', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = createLinkedList<number>();
        const ways: (() => void)[] = [];
        let model: number[] = [];
        const leave = (value: number | undefined): void => {
          if (value === undefined) return;
          ways[value]?.();
          model = model.filter((it) => it !== value);
        };
        for (const it of steps) {
          if (it === 'come') {
            model.push(ways.length);
            ways.push(line.add(ways.length));
          } else leave(it === 'first' ? line.first : it.leaves);
          expect([line.size, line.first]).toEqual([model.length, model[0]]);
        }
      }),
    );
  });
});
