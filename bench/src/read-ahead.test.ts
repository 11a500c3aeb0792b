import { expect, it } from '@jest/globals';
import { readAhead } from './read-ahead.js';

const mark = (at: number, written: number, sendQueue = 0, receiveQueue = 0) => ({
  at,
  written,
  sendQueue,
  receiveQueue,
});

it('is what the process has read and the consumer has not begun with, no more', () => {
  const marks = [mark(10, 600, 200, 100), mark(20, 1_000, 0, 300), mark(30, 1_000)];
  // 100 bytes for each of ten deltas: 3 − 1, 7 − 2, 10 − 10 of them.
  const takenAt = [5, 15, ...Array.from({ length: 8 }, () => 25)];
  expect(readAhead(marks, takenAt)).toBe(5);
});

it('is never less than nothing', () => {
  expect(readAhead([mark(10, 100, 50, 50), mark(20, 100)], [1])).toBe(0);
});

it('is not known without marks', () => {
  expect(readAhead([], [1])).toBeUndefined();
});
