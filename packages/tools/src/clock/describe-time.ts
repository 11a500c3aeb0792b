import type { TimeZone } from './time-zone.js';

export interface LocalTime {
  /** One sentence in English. */
  readonly text: string;
  /** ISO 8601, in UTC. */
  readonly instant: string;
  readonly timeZone: string;
  /** The difference to UTC at that moment, such as `+05:30`. */
  readonly offset: string;
}

/** Describes a time, in milliseconds since 1970, in a time zone. `place` is the name that the model used for it. */
export const describeTime = (now: number, timeZone: TimeZone, place = ''): LocalTime => {
  const { name, zone, shift } = timeZone;
  const part = partsOf(now + shift * 60_000, zone);
  const offset = shift === 0 ? offsetAt(now, zone) : name.replace('UTC', '');
  const time = `${part('hour')}:${part('minute')}:${part('second')}`;
  const date = `${part('weekday')}, ${part('day')} ${part('month')} ${part('year')}`;
  return {
    text: `It is ${time} on ${date} in ${where(place, timeZone, longNameAt(now, timeZone), offset)}.`,
    instant: new Date(now).toISOString(),
    timeZone: name,
    offset,
  };
};

const partsOf = (now: number, timeZone: string): ((type: string) => string) => {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).formatToParts(now);
  return (wanted) => parts.find(({ type }) => type === wanted)?.value ?? '';
};

const where = (place: string, { name }: TimeZone, longName: string, offset: string): string => {
  const isNamed = place !== '' && place.toLowerCase() !== name.toLowerCase();
  const about = [isNamed ? name : '', longName, name === `UTC${offset}` ? '' : `UTC${offset}`];
  const details = about.filter((it) => it !== '').join(', ');
  return `${isNamed ? place : name}${details === '' ? '' : ` (${details})`}`;
};

const zoneNameAt = (now: number, timeZone: string, timeZoneName: 'long' | 'longOffset'): string =>
  new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName })
    .formatToParts(now)
    .find(({ type }) => type === 'timeZoneName')?.value ?? '';

/** A name such as `Central European Summer Time`; `''` if the zone only has an offset. */
const longNameAt = (now: number, { zone, shift }: TimeZone): string => {
  const name = shift === 0 ? zoneNameAt(now, zone, 'long') : '';
  return /^GMT[-+]/u.test(name) ? '' : name;
};

const offsetAt = (now: number, zone: string): string =>
  zoneNameAt(now, zone, 'longOffset').replace('GMT', '') || '+00:00';
