/** The part of `Headers` that errors are read from. */
export type HeadersLike = Pick<Headers, 'get'>;

/**
 * Returns the wait that a server asks for, in milliseconds: from `retry-after-ms`, or from `retry-after` in seconds
 * (fractions allowed), as an HTTP date or as an epoch, relative to `now`. Without these, the limits that are exhausted
 * decide if the error is one of a limit, by the headers with their reset. Negative, past and malformed values are ignored.
 */
export const retryAfterMs = (
  headers: HeadersLike,
  now: number,
  isLimited = true,
): number | undefined =>
  numberIn(headers.get('retry-after-ms')) ??
  secondsOrDate(headers.get('retry-after')?.trim(), now) ??
  (isLimited ? resetMs(headers, now) : undefined);

const secondsOrDate = (value: string | undefined, now: number): number | undefined => {
  const seconds = numberIn(value);
  if (seconds !== undefined) return untilEpoch(seconds, now) ?? seconds * 1_000;
  // HTTP dates start with the day of the week; `Date.parse` finds a date in almost any string.
  return value !== undefined && /^(mon|tue|wed|thu|fri|sat|sun)/i.test(value)
    ? untilDate(value, now)
    : undefined;
};

const untilDate = (value: string, now: number): number | undefined => {
  const wait = Date.parse(value) - now;
  return wait >= 0 ? wait : undefined;
};

/** A number of seconds or milliseconds since 1970: one after 2001 is no wait. */
const untilEpoch = (value: number, now: number): number | undefined => {
  if (value < 1e9) return undefined;
  return Math.max(0, (value < 1e11 ? value * 1_000 : value) - now);
};

const numberIn = (value: string | null | undefined): number | undefined =>
  value !== null && value !== undefined && /^\s*\d{1,13}(\.\d+)?\s*$/.test(value)
    ? Number(value)
    : undefined;

/** The limits of OpenAI, Groq and others, of OpenRouter, and of the draft of the IETF. */
const limits: readonly string[] = [
  'x-ratelimit-requests',
  'x-ratelimit-tokens',
  'x-ratelimit',
  'ratelimit',
];

/** The longest wait for a limit with nothing left. It also applies to a single limit that reports no remainder. */
const resetMs = (headers: HeadersLike, now: number): number | undefined => {
  const found = limits.flatMap((name) => {
    const [prefix, kind = ''] = name.split(/(?<=ratelimit)-/);
    const header = (what: string): string | null =>
      headers.get([prefix, what, kind].filter(Boolean).join('-'));
    const wait = waitOf(header('reset')?.trim(), now);
    return wait === undefined ? [] : [{ wait, left: numberIn(header('remaining')) }];
  });
  const exhausted = found.filter(({ left }) => left === 0);
  const [only, ...others] = found;
  if (exhausted.length > 0) return Math.max(...exhausted.map(({ wait }) => wait));
  return only?.left === undefined && others.length === 0 ? only?.wait : undefined;
};

/** Seconds, an epoch, an ISO date, or a duration such as `1m30.5s` and `250ms`. */
const waitOf = (value: string | undefined, now: number): number | undefined => {
  if (value === undefined) return undefined;
  if (/^\d{4}-\d\d-\d\dT/.test(value)) return untilDate(value, now);
  const parts = [...value.matchAll(/(\d{1,9}(?:\.\d+)?)(ms|[dhms])/g)];
  if (parts.length > 0 && parts.map(([part]) => part).join('') === value) {
    return parts.reduce(
      (sum, [, amount, unit = '']) => sum + Number(amount) * (units[unit] ?? 0),
      0,
    );
  }
  return secondsOrDate(value, now);
};

const units: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
