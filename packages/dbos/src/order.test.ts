import { describe, expect, it } from '@jest/globals';
import { type Order, readOrder, storedOrder } from './order.js';

const order: Order = { callId: 'c', agent: 'a', input: 'Hi.' };

describe('a stored order', () => {
  it('is read as it was', () => {
    expect(readOrder('c', JSON.parse(JSON.stringify(storedOrder(order))))).toEqual(order);
  });

  it.each([
    [0, 'format version 0'],
    [2, 'format version 2'],
    ['1', 'an invalid format version'],
    [undefined, 'no format version'],
  ])('S4: is refused in another format version: %j', (format, found) => {
    expect(() => readOrder('c', { ...order, format })).toThrow(
      `The start of the call 'c' has ${found}, but this release of Millrace reads only format version 1.`,
    );
  });

  it.each([null, 'c', { format: 1, callId: 'c' }])(
    'S4: is refused if it is damaged: %j',
    (value) => {
      expect(() => readOrder('c', value)).toThrow("The start of the call 'c' is damaged.");
    },
  );
});
