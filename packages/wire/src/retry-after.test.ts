import { describe, expect, it } from '@jest/globals';
import { retryAfterMs } from './retry-after.js';

const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT');

describe('retryAfterMs', () => {
  it.each([
    ['retry-after', '2', 2_000],
    ['retry-after', '0', 0],
    ['retry-after', ' 1.5 ', 1_500],
    ['retry-after', 'Wed, 21 Oct 2026 07:28:30 GMT', 30_000],
    ['retry-after', 'Wednesday, 21-Oct-26 07:28:30 GMT', 30_000],
    ['retry-after-ms', '250', 250],
    ['retry-after-ms', '0.5', 0.5],
  ])('C4: reads %s: %s', (name, value, wait) => {
    expect(retryAfterMs(new Headers({ [name]: value }), now)).toBe(wait);
  });

  it.each([
    ['retry-after', '-1'],
    ['retry-after', ''],
    ['retry-after', 'soon'],
    ['retry-after', 'soon 5'],
    ['retry-after', '1e9'],
    ['retry-after', '9'.repeat(400)],
    ['x-ratelimit-reset', 'soon'],
    ['x-ratelimit-reset-tokens', '6m0'],
    ['retry-after', 'Wed, 21 Oct 2026 07:27:59 GMT'],
    ['retry-after', 'Wed, 99 Foo'],
    ['retry-after-ms', 'NaN'],
    ['retry-after-ms', '-5'],
  ])('C4: passes over %s: %s', (name, value) => {
    expect(retryAfterMs(new Headers({ [name]: value }), now)).toBeUndefined();
  });

  const epoch = now / 1_000;
  it.each<[number, Record<string, string>]>([
    [30_000, { 'retry-after': String(epoch + 30) }],
    [30_000, { 'retry-after': String(now + 30_000) }],
    [0, { 'retry-after': String(epoch - 30) }],
    [30_000, { 'x-ratelimit-reset': String(epoch + 30) }],
    [30_000, { 'x-ratelimit-reset': String(now + 30_000) }],
    [30_000, { 'x-ratelimit-reset': '30' }],
    [30_000, { 'ratelimit-reset': '30' }],
    [30_000, { 'x-ratelimit-reset': '2026-10-21T07:28:30Z' }],
    [90_500, { 'x-ratelimit-reset-tokens': '1m30.5s', 'x-ratelimit-remaining-tokens': '0' }],
    [250, { 'x-ratelimit-reset-requests': '250ms', 'x-ratelimit-remaining-requests': '0' }],
    [
      6_000,
      {
        'x-ratelimit-reset-requests': '8h',
        'x-ratelimit-remaining-requests': '9',
        'x-ratelimit-reset-tokens': '6s',
        'x-ratelimit-remaining-tokens': '0',
      },
    ],
    [2_000, { 'retry-after': '2', 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '0' }],
  ])('C4: waits %d ms for %j', (wait, headers) => {
    expect(retryAfterMs(new Headers(headers), now)).toBe(wait);
  });

  it('C4: does not wait for a limit with something left, or for one of several without a name', () => {
    const left = { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '5' };
    expect(retryAfterMs(new Headers(left), now)).toBeUndefined();
    const two = { 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset-tokens': '8h' };
    expect(retryAfterMs(new Headers(two), now)).toBeUndefined();
  });

  it('C4: takes milliseconds first', () => {
    const headers = new Headers({ 'retry-after-ms': '40', 'retry-after': '2' });
    expect(retryAfterMs(headers, now)).toBe(40);
    const broken = new Headers({ 'retry-after-ms': 'x', 'retry-after': '2' });
    expect(retryAfterMs(broken, now)).toBe(2_000);
  });
});
