import type { AgentEvent } from '@millrace/core';
import { noUsage } from '@millrace/core/adapter';
import { catchError, concatMap, type OperatorFunction } from 'rxjs';
import type { Masks } from '../masks.js';
import { type ClientResultOptions, withoutClientResults } from './client-results.js';
import type { Part } from './part.js';
import { toCallError, toParts } from './to-parts.js';
import { type TicketOptions, withTickets } from './with-tickets.js';

/**
 * Writes the events of calls in the words of a protocol. It completes, whatever happens: even if no event has come before an error, the
 * protocol's own last words are written.
 */
export const encodeParts =
  <Chunk>(
    options: TicketOptions & ClientResultOptions,
    masks: Masks,
    encode: (part: Part) => readonly Chunk[],
  ): OperatorFunction<AgentEvent, Chunk> =>
  (event$) =>
    event$.pipe(
      toParts((error) => masks.error(error)),
      withoutClientResults(options),
      withTickets(options),
      concatMap(encode),
      catchError((cause: unknown) => encode(failure(cause))),
    );

/** The end of a call of which nothing is known but that it failed. */
const failure = (cause: unknown): Part => ({
  type: 'callEnd',
  by: { callId: '', agent: [] },
  end: { status: 'failed', error: toCallError(cause) },
  usage: noUsage,
});
