import { wires } from '../scenario.js';
import { json } from '../steps.js';
import { vendorError } from '../vendor-error.js';
import { answering, type Fault, isSunny, sunny } from './fault.js';

interface Wait {
  readonly id: string;
  readonly about: string;
  readonly headers: () => Readonly<Record<string, string>>;
  /** Milliseconds; none, where the header says nothing that can be obeyed. */
  readonly waitMs?: number;
}

const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString();

const waits: readonly Wait[] = [
  { id: 'none', about: 'no word on when', headers: () => ({}) },
  {
    id: 'seconds',
    about: '`retry-after` in seconds',
    headers: () => ({ 'retry-after': '1' }),
    waitMs: 1000,
  },
  {
    id: 'decimals',
    about: '`retry-after` in decimals of a second',
    headers: () => ({ 'retry-after': '0.25' }),
    waitMs: 250,
  },
  {
    id: 'date',
    about: '`retry-after` with a date, between one and two seconds from now',
    headers: () => ({ 'retry-after': inSeconds(2) }),
    waitMs: 900,
  },
  {
    id: 'milliseconds',
    about: '`retry-after-ms`, which goes before `retry-after`',
    headers: () => ({ 'retry-after-ms': '250', 'retry-after': '50' }),
    waitMs: 250,
  },
  { id: 'zero', about: '`retry-after: 0`', headers: () => ({ 'retry-after': '0' }) },
  {
    id: 'negative',
    about: 'a `retry-after` below zero, which is passed over',
    headers: () => ({ 'retry-after': '-5' }),
  },
  {
    id: 'past',
    about: 'a `retry-after` with a date that is over',
    headers: () => ({ 'retry-after': inSeconds(-60) }),
  },
  {
    id: 'garbage',
    about: 'a `retry-after` that says nothing',
    headers: () => ({ 'retry-after': 'soon', 'retry-after-ms': 'NaN' }),
  },
];

const obeyed = waits.map(({ id, about, headers, waitMs }): Fault => ({
  id: `wait-${id}`,
  row: 'X4',
  about: `Status 429 with ${about}; then success.`,
  wires,
  scenario: (wire) => ({
    responses: [json(429, vendorError(wire, 429), headers()), answering(wire, sunny)],
  }),
  expects: { outcome: isSunny, requests: 2, ...(waitMs === undefined ? {} : { waitMs }) },
}));

/** How long a vendor asks to be left alone. */
export const waitFaults: readonly Fault[] = [
  ...obeyed,
  {
    id: 'wait-too-long',
    row: 'X4',
    about: 'Status 429 with a `retry-after` of 120 s: longer than anybody waits.',
    wires,
    scenario: (wire) => ({
      responses: [json(429, vendorError(wire, 429), { 'retry-after': '120' })],
    }),
    expects: { outcome: { error: 'rateLimited', retryAfterMs: 120_000 }, requests: 1 },
  },
  {
    id: 'wait-not-for-ever',
    row: 'X4',
    about: 'Status 503 with a `retry-after` larger than a timer can count.',
    wires,
    scenario: (wire) => ({
      responses: [json(503, vendorError(wire, 503), { 'retry-after': '99999999999' })],
    }),
    expects: { outcome: { error: 'server' }, requests: 1 },
  },
];
