import { describe, expect, it } from '@jest/globals';
import { truncate } from './truncate.js';

describe('shortened', () => {
  it.each([
    ['all of it', 9, 'all of it'],
    ['no half sk-123456 word', 12, 'no half'],
    ['{"key":"sk-123456"}', 12, '{"key":"'],
    ['sk-123456', 5, ''],
    ['it is pa$$w0rd!;#@1', 14, 'it is'],
  ])('X10: leaves no begun word: %s', (text, longest, short) => {
    expect(truncate(text, longest)).toBe(short);
  });
});
