import { describe, expect, it } from '@jest/globals';
import { nearMatches } from './words.js';

describe('nearMatches', () => {
  const cities = ['berlin', 'bern', 'tokyo', 'paris', 'new york'];

  it('finds misspelt names, the nearest first', () => {
    expect(nearMatches('Berln', cities)).toEqual(['berlin', 'bern']);
    expect(nearMatches('Tokio', cities)).toEqual(['tokyo']);
  });

  it('finds a name that is part of another', () => {
    expect(nearMatches('york', cities)).toEqual(['new york']);
  });

  it('finds nothing if nothing is near', () => {
    expect(nearMatches('atlantis', cities)).toEqual([]);
    expect(nearMatches('', cities)).toEqual([]);
    expect(nearMatches('x', ['y', 'z'])).toEqual([]);
  });

  it('gives no more than the limit, and each once', () => {
    expect(nearMatches('aaaa', ['aaab', 'aaab', 'aaac', 'aaad'], 2)).toEqual(['aaab', 'aaac']);
  });
});
