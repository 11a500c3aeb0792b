import { describe, expect, it } from '@jest/globals';
import { textOf } from 'millrace';
import fc from 'fast-check';
import { TestScheduler } from 'rxjs/testing';
import { lentToolContext } from 'millrace/testing';
import { runTool } from '../run-tool.test-support.js';
import { clock } from './clock.js';

/** A scheduler that stands at one moment. */
const at = (instant: string): TestScheduler => {
  const scheduler = new TestScheduler(() => undefined);
  scheduler.now = () => Date.parse(instant);
  return scheduler;
};

const winter = '2025-01-15T12:00:00Z';
const summer = '2025-07-15T12:00:00Z';

const tool = clock({ timeZone: 'Europe/Berlin' });
const ask = async (place: string | undefined, instant = winter): Promise<string> =>
  (await runTool(tool, place === undefined ? {} : { place }, { scheduler: at(instant) })).text;

describe('clock', () => {
  it('reports the local time if no place is asked for', async () => {
    const text =
      'It is 13:00:00 on Wednesday, 15 January 2025 in Europe/Berlin (Central European Standard Time, UTC+01:00).';
    expect(await ask(undefined)).toBe(text);
    expect(await ask('')).toBe(text);
    expect(await ask('local')).toBe(text);
  });

  it('takes the machine for local by default', async () => {
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const { output } = await runTool(clock(), {}, { scheduler: at(winter) });
    expect(output.details).toMatchObject({ instant: '2025-01-15T12:00:00.000Z' });
    expect(textOf(output)).toContain(zone);
  });

  it('gives the instant, the zone and the offset to the user interface', async () => {
    const { output } = await runTool(tool, { place: 'Tokyo' }, { scheduler: at(winter) });
    expect(output.details).toEqual({
      instant: '2025-01-15T12:00:00.000Z',
      timeZone: 'Asia/Tokyo',
      offset: '+09:00',
    });
  });

  it('follows virtual time', () => {
    const scheduler = new TestScheduler(() => undefined);
    const told: string[] = [];
    scheduler.run(() => {
      scheduler.schedule(() => {
        tool.run$({ place: 'UTC' }, lentToolContext({ scheduler })).subscribe((emission) => {
          if (emission.type === 'output') told.push(textOf(emission.output));
        });
      }, 90_000);
    });
    expect(told).toEqual([
      'It is 00:01:30 on Thursday, 1 January 1970 in UTC (Coordinated Universal Time, UTC+00:00).',
    ]);
  });

  it.each([
    ['Europe/Berlin', '14:00:00', 'Europe/Berlin (Central European Summer Time, UTC+02:00)'],
    ['europe/berlin', '14:00:00', 'Europe/Berlin'],
    ['Europe/Munich', '14:00:00', 'Europe/Munich (Europe/Berlin,'],
    ['America/Buenos Aires', '09:00:00', 'UTC-03:00'],
    ['New York City', '08:00:00', 'America/New_York, Eastern Daylight Time, UTC-04:00'],
    ['Mexico City', '06:00:00', 'America/Mexico_City'],
    ['Beijing', '20:00:00', 'Asia/Shanghai'],
    ['San Francisco', '05:00:00', 'America/Los_Angeles'],
    ['Washington', '08:00:00', 'America/New_York'],
    ['Munich, Germany', '14:00:00', 'Europe/Berlin'],
    ['Honolulu, USA', '02:00:00', 'Pacific/Honolulu'],
    ['São Paulo', '09:00:00', 'America/Sao_Paulo'],
    ['sao paulo', '09:00:00', 'America/Sao_Paulo'],
    ['Zürich', '14:00:00', 'Europe/Zurich'],
    ['Rio', '09:00:00', 'America/Sao_Paulo'],
    ['Mumbai', '17:30:00', 'Asia/Kolkata, India Standard Time, UTC+05:30'],
    ['Kathmandu', '17:45:00', 'Asia/Kathmandu, Nepal Time, UTC+05:45'],
    ['Adelaide', '21:30:00', 'UTC+09:30'],
    ['Lord Howe', '22:30:00', 'UTC+10:30'],
    ['Japan', '21:00:00', 'Asia/Tokyo'],
    ['Germany', '14:00:00', 'Europe/Berlin'],
    ['UK', '13:00:00', 'Europe/London, British Summer Time'],
    ['the Netherlands', '14:00:00', 'Europe/Amsterdam'],
    ['Trinidad and Tobago', '08:00:00', 'America/Port_of_Spain'],
    ['PST', '05:00:00', 'America/Los_Angeles, Pacific Daylight Time'],
    ['JST', '21:00:00', 'Asia/Tokyo'],
    ['CET', '14:00:00', 'UTC+02:00'],
    ['GMT', '12:00:00', 'UTC'],
    ['UTC+2', '14:00:00', 'UTC+2 (UTC+02:00)'],
    ['UTC-5', '07:00:00', 'UTC-05:00'],
    ['GMT+5:30', '17:30:00', 'UTC+05:30'],
    ['-0330', '08:30:00', 'UTC-03:30'],
    ['UTC+0', '12:00:00', 'UTC'],
  ])('reports the time in %s', async (place, time, zone) => {
    const text = await ask(place, summer);
    expect(text).toContain(`It is ${time} on Tuesday, 15 July 2025`);
    expect(text).toContain(zone);
  });

  it.each([
    ['2025-03-30T00:59:59Z', '01:59:59', 'UTC+01:00'],
    ['2025-03-30T01:00:00Z', '03:00:00', 'UTC+02:00'],
    ['2025-10-26T00:59:59Z', '02:59:59', 'UTC+02:00'],
    ['2025-10-26T01:00:00Z', '02:00:00', 'UTC+01:00'],
  ])('changes to daylight saving time and back, at %s', async (instant, time, offset) => {
    const text = await ask('Berlin', instant);
    expect(text).toContain(time);
    expect(text).toContain(offset);
  });

  it('crosses the date line', async () => {
    expect(await ask('Auckland', '2024-12-31T11:30:00Z')).toContain(
      '00:30:00 on Wednesday, 1 January 2025',
    );
    expect(await ask('Honolulu', '2025-01-01T09:59:59Z')).toContain(
      '23:59:59 on Tuesday, 31 December 2024',
    );
  });

  it.each([
    ['IST', /several time zones.*Asia\/Kolkata, Asia\/Jerusalem, Europe\/Dublin/u],
    ['USA', /several time zones.*America\/New_York/u],
    ['Australia', /several time zones.*Australia\/Sydney/u],
    ['Georgia', /several time zones.*Asia\/Tbilisi/u],
    ['Berln', /Did you mean Berlin/u],
    ['Tokio', /Did you mean Tokyo/u],
    ['Paris, Texas', /it may not be the one in 'Texas'/u],
    ['Nowhere/Land', /No time zone is known/u],
    ['UTC+15', /No time zone is known/u],
    ['constructor', /No time zone is known/u],
    ['__proto__', /No time zone is known/u],
    ['../../etc/passwd', /No time zone is known/u],
    [',', /No time zone is known/u],
    ['/', /No time zone is known/u],
  ])('names what is wrong with %s', async (place, reason) => {
    await expect(ask(place)).rejects.toThrow(reason);
  });

  it('refuses more than a name', async () => {
    await expect(ask('x'.repeat(101))).rejects.toThrow('place');
  });

  it('refuses a default zone that does not exist, when it is made', () => {
    expect(() => clock({ timeZone: 'Europe/Atlantis' })).toThrow(/Europe\/Atlantis/u);
  });

  it('knows every zone that the machine knows, and shows the date that Intl shows', async () => {
    const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
    const instants = fc.date({
      min: new Date('1990-01-01'),
      max: new Date('2037-01-01'),
      noInvalidDate: true,
    });
    await fc.assert(
      fc.asyncProperty(zones, instants, async (zone, instant) => {
        const time = new Intl.DateTimeFormat('en-GB', {
          timeZone: zone,
          timeStyle: 'medium',
        }).format(instant);
        expect(await ask(zone, instant.toISOString())).toContain(`It is ${time} on`);
      }),
      { numRuns: 60 },
    );
  });

  it('reports any place or says why not', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 60 }), async (place) => {
        const result = await ask(place).catch((error: unknown) => error);
        const text = result instanceof Error ? result.message : result;
        expect(text).toMatch(/^(?:It is|No time zone|'.*' (?:may mean|is in))/su);
      }),
      { numRuns: 60 },
    );
  });
});
