import { isRecord } from './is-record.js';
import type { Scenario, SeenRequest } from './scenario.js';

/** What a test asks of the server's process. Each is replied to under its number. */
export type Ask = { readonly ask: number } & (
  | { readonly type: 'play'; readonly id: string; readonly scenario: Scenario }
  | { readonly type: 'requests'; readonly id: string }
  /** Waits until the request at an index has come. */
  | { readonly type: 'arrived'; readonly id: string; readonly index: number }
  /** Waits until the request at an index has come and is over; without one, until all that came are over. */
  | { readonly type: 'closed'; readonly id: string; readonly index?: number }
);

/** What the process says: where it listens, or a reply. */
export type Tell =
  | { readonly type: 'listening'; readonly origin: string }
  | { readonly type: 'reply'; readonly ask: number; readonly requests: readonly SeenRequest[] };

/** Tells whether a message comes from the test. */
export const isAsk = (message: unknown): message is Ask =>
  isRecord(message) && typeof message['ask'] === 'number' && message['type'] !== 'reply';

/** Tells whether a message comes from the server's process. */
export const isTell = (message: unknown): message is Tell =>
  isRecord(message) && (message['type'] === 'listening' || message['type'] === 'reply');
