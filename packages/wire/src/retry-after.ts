/** The part of `Headers` that errors are read from. */
export type HeadersLike = Pick<Headers, 'get'>;

/**
 * Returns the wait that a server asks for, in milliseconds: from `retry-after-ms`, or from `retry-after` in seconds
 * (fractions allowed) or as an HTTP date relative to `now`. Negative, past and malformed values are ignored.
 */
export const retryAfterMs = (headers: HeadersLike, now: number): number | undefined =>
  numberIn(headers.get('retry-after-ms')) ?? secondsOrDate(headers.get('retry-after')?.trim(), now);

const secondsOrDate = (value: string | undefined, now: number): number | undefined => {
  const seconds = numberIn(value);
  if (seconds !== undefined) return seconds * 1_000;
  // HTTP dates start with the day of the week; `Date.parse` finds a date in almost any string.
  if (value === undefined || !/^(mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return undefined;
  const wait = Date.parse(value) - now;
  return wait >= 0 ? wait : undefined;
};

const numberIn = (value: string | null | undefined): number | undefined =>
  value !== null && value !== undefined && /^\s*\d{1,12}(\.\d+)?\s*$/.test(value)
    ? Number(value)
    : undefined;
