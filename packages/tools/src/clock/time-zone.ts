/** A zone in which `Intl` can tell the time, or a fixed offset from UTC. */
export interface TimeZone {
  /** `Europe/Berlin`, or `UTC+05:30`. */
  readonly name: string;
  /** What `Intl` calls it: `UTC` for an offset. */
  readonly zone: string;
  /** Minutes to add to an instant before it is shown in `zone`. */
  readonly shift: number;
}

/** Makes the zone of an IANA name, in any case; undefined when there is none. */
export const namedZone = (name: string): TimeZone | undefined => {
  const zone = canonicalZone(name);
  return zone === undefined ? undefined : { name: modernNames.get(zone) ?? zone, zone, shift: 0 };
};

/** The name by which `Intl` knows a zone, whatever it was called; undefined when there is none. */
export const canonicalZone = (name: string): string | undefined => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
};

/** Makes the zone of an offset such as `UTC+2`, `GMT-03:30` or `+0545`; undefined for anything else. */
export const offsetZone = (text: string): TimeZone | undefined => {
  const [, sign = '', hours = '', minutes = '0'] =
    /^(?:utc|gmt)?\s*([-+−])\s*(\d{1,2})(?::?([0-5]\d))?$/iu.exec(text.trim()) ?? [];
  const shift = Number(hours) * 60 + Number(minutes);
  if (sign === '' || shift > 14 * 60) return undefined;
  if (shift === 0) return { name: 'UTC', zone: 'UTC', shift };
  const isEast = sign === '+';
  const clock = `${hours.padStart(2, '0')}:${minutes.padStart(2, '0')}`;
  return { name: `UTC${isEast ? '+' : '-'}${clock}`, zone: 'UTC', shift: isEast ? shift : -shift };
};

/** Some releases of `Intl` still give the names that these places had long ago. */
const modernNames = new Map([
  ['Asia/Calcutta', 'Asia/Kolkata'],
  ['Asia/Katmandu', 'Asia/Kathmandu'],
  ['Asia/Rangoon', 'Asia/Yangon'],
  ['Asia/Saigon', 'Asia/Ho_Chi_Minh'],
  ['Europe/Kiev', 'Europe/Kyiv'],
  ['America/Godthab', 'America/Nuuk'],
]);
