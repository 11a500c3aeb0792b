import { describe, expect, it } from '@jest/globals';
import { readCron } from './cron.js';

const timesOf = (expression: string, timeZone: string, from: string, count: number) => {
  const times = readCron(expression, timeZone);
  const found: string[] = [];
  for (let at = times.after(Date.parse(from)); at !== undefined && found.length < count;) {
    found.push(new Date(at).toISOString());
    at = times.after(at);
  }
  return found;
};

describe('readCron', () => {
  it('keeps the clock time of a zone when summer time begins and ends', () => {
    expect(timesOf('0 9 * * *', 'Europe/Berlin', '2027-03-26T12:00:00Z', 3)).toEqual([
      '2027-03-27T08:00:00.000Z',
      '2027-03-28T07:00:00.000Z',
      '2027-03-29T07:00:00.000Z',
    ]);
    expect(timesOf('0 9 * * *', 'Europe/Berlin', '2027-10-29T12:00:00Z', 3)).toEqual([
      '2027-10-30T07:00:00.000Z',
      '2027-10-31T08:00:00.000Z',
      '2027-11-01T08:00:00.000Z',
    ]);
  });

  it('has one time for a clock time that does not exist, or that comes twice', () => {
    expect(timesOf('30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00:00Z', 2)).toEqual([
      '2027-03-28T01:00:00.000Z',
      '2027-03-29T00:30:00.000Z',
    ]);
    expect(timesOf('30 2 * * *', 'Europe/Berlin', '2027-10-30T12:00:00Z', 2)).toEqual([
      '2027-10-31T00:30:00.000Z',
      '2027-11-01T01:30:00.000Z',
    ]);
  });

  it('has no time after the last one', () => {
    expect(timesOf('0 0 0 1 1 * 2027', 'UTC', '2026-11-30T00:00:00Z', 5)).toEqual([
      '2027-01-01T00:00:00.000Z',
    ]);
  });

  it('refuses what is no expression and no time zone, and shows how to write one', () => {
    for (const [expression, timeZone] of [
      ['', 'UTC'],
      ['61 * * * *', 'UTC'],
      ['tomorrow', 'UTC'],
      ['* * * *', 'UTC'],
      ['0 9 * * *', 'Europe/Atlantis'],
    ] as const) {
      expect(() => readCron(expression, timeZone)).toThrow(
        expect.objectContaining({
          code: 'config',
          message: expect.stringMatching(
            /^schedule\(\) cannot read .* such as '0 9 \* \* 1-5'\.$/su,
          ),
        }),
      );
    }
  });
});
