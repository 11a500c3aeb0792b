import { expect, it } from '@jest/globals';
import { isRegionName, zoneOf } from './time-zones.js';

it.each([
  ['Tokyo', 'Asia/Tokyo'],
  ['buenos aires', 'America/Argentina/Buenos_Aires'],
  ['Germany', 'Europe/Berlin'],
  ['america/new_york', 'America/New_York'],
  ['EST', 'America/New_York'],
  ['UTC-5', 'Etc/GMT+5'],
  ['UTC+99', undefined],
  ['est', undefined],
  ['nowhere', undefined],
  ['__proto__', undefined],
])('zoneOf(%j) is %s', (name, zone) => {
  expect(zoneOf(name)).toBe(zone);
});

it('knows only zones that the platform knows', () => {
  const format = (name: string) =>
    new Intl.DateTimeFormat('en', { timeZone: zoneOf(name) ?? 'none' });
  for (const name of ['Mumbai', 'Kyiv', 'Ho Chi Minh City', 'nepal', 'UTC', 'UTC+2', 'la paz']) {
    expect(() => format(name)).not.toThrow();
  }
});

it('isRegionName knows countries', () => {
  expect(isRegionName('Japan')).toBe(true);
  expect(isRegionName('Tokyo')).toBe(false);
});
