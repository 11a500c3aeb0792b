import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SeenRequest } from '../scenario.js';

/** One request that is being answered. */
export interface Visit {
  /** What is known of it now. */
  seen(): SeenRequest;
  /** Resolves when the response has ended or the client has left. */
  readonly closed: Promise<void>;
  /** Counts bytes of the response. */
  wrote(bytes: number): void;
  /** Says that the server leaves before the client does. */
  breakOff(): void;
}

/** What is known of a request when it has been read. */
export type Arrival = Pick<SeenRequest, 'path' | 'atOther' | 'headers' | 'body' | 'violations'>;

/** Follows a request until its response has ended or its client has left. */
export const createVisit = (
  request: IncomingMessage,
  response: ServerResponse,
  startedAt: number,
  arrival: Arrival,
): Visit => {
  let bytesWritten = 0;
  let end: Pick<SeenRequest, 'closedAt'> = {};
  let brokenOff = false;
  let closedEarly = false;
  const closed = new Promise<void>((resolve) => {
    response.once('close', () => {
      end = { closedAt: Date.now() };
      closedEarly = !response.writableFinished && !brokenOff;
      resolve();
    });
  });
  return {
    closed,
    wrote: (bytes) => {
      bytesWritten += bytes;
    },
    breakOff: () => {
      brokenOff = true;
    },
    seen: () => ({
      method: request.method ?? '',
      ...arrival,
      closedEarly,
      bytesWritten,
      startedAt,
      ...end,
    }),
  };
};
