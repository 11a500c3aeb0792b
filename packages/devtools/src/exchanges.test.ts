import { describe, expect, it } from '@jest/globals';
import { createExchanges } from './exchanges.js';

const exchange = (length: number) => ({
  ...{ at: 0, url: '', headers: {}, body: 'x'.repeat(length), omitted: 0 },
});

describe('the requests that devtools keep', () => {
  it('are the newest ones, up to a number of characters', () => {
    const exchanges = createExchanges(100);
    exchanges.note('a', exchange(40), 0);
    exchanges.note('a', { ...exchange(40), response: { at: 0, body: 'y', omitted: 0 } }, 0);
    exchanges.note('a', exchange(10), 1);
    exchanges.note('b', exchange(49), 0);
    expect(exchanges.of('a')).toHaveLength(2);
    exchanges.note('b', { ...exchange(49), response: { at: 0, body: 'y', omitted: 0 } }, 0);
    expect(exchanges.of('a')).toEqual([]);
    expect(exchanges.of('b')).toHaveLength(1);
    exchanges.note('c', exchange(50), 0);
    expect(exchanges.of('b')).toHaveLength(1);
    exchanges.note('d', exchange(101), 0);
    expect(exchanges.of('c')).toEqual([]);
    expect(exchanges.of('d')).toEqual([]);
  });
});
