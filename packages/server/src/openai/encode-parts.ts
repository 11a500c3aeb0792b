import { type AgentEvent, noUsage } from '@millrace/core';
import { catchError, concatMap, type OperatorFunction } from 'rxjs';
import type { Masks } from '../masks.js';
import type { Part } from '../parts/part.js';
import { toCallError, toParts } from '../parts/to-parts.js';

/**
 * Encodes the events of calls as the encoders of the other protocols do, without tokens of approvals. Always completes: an
 * error, even before any event, ends as the protocol requires.
 */
export const encodeParts = <Chunk extends object>(
  masks: Masks,
  encode: (part: Part) => readonly Chunk[],
): OperatorFunction<AgentEvent, Chunk> => {
  const parts = toParts((error) => masks.error(error));
  return (event$) =>
    event$.pipe(
      parts,
      concatMap(encode),
      catchError((cause: unknown) =>
        encode({
          type: 'callEnd',
          by: { callId: '', agent: [] },
          end: { status: 'failed', error: toCallError(cause) },
          usage: noUsage,
        }),
      ),
    );
};
