import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createFifo } from './fifo.js';

describe('createFifo', () => {
  it('hands out what was put in, in order, regardless of the pattern', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(), fc.constant(null))), (steps) => {
        const queue = createFifo<number>();
        const model: number[] = [];
        for (const step of steps) {
          if (step === null) expect(queue.shift()).toBe(model.shift());
          else {
            queue.push(step);
            model.push(step);
          }
          expect(queue.size).toBe(model.length);
        }
      }),
    );
  });
});
