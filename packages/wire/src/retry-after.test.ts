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
    ['retry-after', 'Wed, 21 Oct 2026 07:27:59 GMT'],
    ['retry-after', 'Wed, 99 Foo'],
    ['retry-after-ms', 'NaN'],
    ['retry-after-ms', '-5'],
  ])('C4: passes over %s: %s', (name, value) => {
    expect(retryAfterMs(new Headers({ [name]: value }), now)).toBeUndefined();
  });

  it('C4: takes milliseconds first', () => {
    const headers = new Headers({ 'retry-after-ms': '40', 'retry-after': '2' });
    expect(retryAfterMs(headers, now)).toBe(40);
    const broken = new Headers({ 'retry-after-ms': 'x', 'retry-after': '2' });
    expect(retryAfterMs(broken, now)).toBe(2_000);
  });
});
