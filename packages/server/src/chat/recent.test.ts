import { describe, expect, it } from '@jest/globals';
import { createRecent } from './recent.js';

describe('the latest ids', () => {
  it('are those that were added last, up to a number', () => {
    const recent = createRecent(2);
    for (const id of ['a', 'b', 'a', 'c']) recent.add(id);
    expect(['a', 'b', 'c'].filter(recent.has)).toEqual(['a', 'c']);
    recent.delete('a');
    recent.add('d');
    expect(['a', 'b', 'c', 'd'].filter(recent.has)).toEqual(['c', 'd']);
  });
});
