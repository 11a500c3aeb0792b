/** A time zone of `Intl`, or a fixed offset from UTC. */
export interface TimeZone {
  /** `Europe/Berlin`, or `UTC+05:30`. */
  readonly name: string;
  /** The name for `Intl`: `UTC` for an offset. */
  readonly zone: string;
  /** Minutes to add to a time before it is formatted in `zone`. */
  readonly shift: number;
}

/** Returns the zone with an IANA name, in any case; `undefined` if there is no such zone. */
export const ianaZone = (name: string): TimeZone | undefined => {
  const zone = canonicalZone(name);
  return zone === undefined ? undefined : { name: modernNames.get(zone) ?? zone, zone, shift: 0 };
};

/** The canonical name of a zone in `Intl`; `undefined` if there is no such zone. */
export const canonicalZone = (name: string): string | undefined => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
};

/** Parses an offset such as `UTC+2`, `GMT-03:30` or `+0545`; returns `undefined` for anything else. */
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

/** Some versions of `Intl` still return outdated names. */
const modernNames = new Map([
  ['Asia/Calcutta', 'Asia/Kolkata'],
  ['Asia/Katmandu', 'Asia/Kathmandu'],
  ['Asia/Rangoon', 'Asia/Yangon'],
  ['Asia/Saigon', 'Asia/Ho_Chi_Minh'],
  ['Europe/Kiev', 'Europe/Kyiv'],
  ['America/Godthab', 'America/Nuuk'],
]);
