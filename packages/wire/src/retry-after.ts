/** The headers that a fault is read from; those of any `fetch` will do. */
export type HeadersLike = Pick<Headers, 'get'>;

/**
 * Reads for how many milliseconds a server wants to be left alone, from `retry-after-ms` or `retry-after` in
 * seconds, whole or not, or as a date of HTTP, which counts from `now`. What is negative, past or neither is
 * passed over.
 */
export const retryAfterMs = (headers: HeadersLike, now: number): number | undefined =>
  numberIn(headers.get('retry-after-ms')) ?? secondsOrDate(headers.get('retry-after')?.trim(), now);

const secondsOrDate = (value: string | undefined, now: number): number | undefined => {
  const seconds = numberIn(value);
  if (seconds !== undefined) return seconds * 1_000;
  // Dates of HTTP begin with the day; `Date.parse` finds one in almost any text.
  if (value === undefined || !/^(mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return undefined;
  const wait = Date.parse(value) - now;
  return wait >= 0 ? wait : undefined;
};

const numberIn = (value: string | null | undefined): number | undefined =>
  value !== null && value !== undefined && /^\s*\d{1,12}(\.\d+)?\s*$/.test(value)
    ? Number(value)
    : undefined;
