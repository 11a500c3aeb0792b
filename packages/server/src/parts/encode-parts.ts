import type { AgentEvent } from '@millrace/core';
import { noUsage } from '@millrace/core';
import { catchError, concatMap, type OperatorFunction } from 'rxjs';
import type { Masks } from '../masks.js';
import { type ClientResultOptions, withoutClientResults } from './client-results.js';
import type { Part } from './part.js';
import { toCallError, toParts } from './to-parts.js';
import { type StreamApprovals, withApprovalTokens } from './with-approval-tokens.js';

export type EncodingOptions = StreamApprovals & ClientResultOptions;

/** Encodes the events of calls. Always completes: an error, even before any event, ends as the protocol requires. */
export const encodeParts = <Chunk extends object>(
  options: EncodingOptions,
  masks: Masks,
  encode: (part: Part) => readonly Chunk[],
): OperatorFunction<AgentEvent, Chunk> => {
  const parts = toParts((error) => masks.error(error));
  return (event$) =>
    event$.pipe(
      options.asking?.through(parts) ?? parts,
      withoutClientResults(options),
      withApprovalTokens(options),
      concatMap((part) => {
        const chunks = encode(part);
        if (isFromQueue(part)) chunks.forEach((chunk) => placeless.add(chunk));
        return chunks;
      }),
      catchError((cause: unknown) => encode(failure(cause))),
    );
};

/**
 * Objects that come from the queue of approvals, not from an event: they have no place among the events of a call. A client
 * may get them again, and replaces them.
 */
export const placeless = new WeakSet<object>();

const isFromQueue = (part: Part): boolean =>
  part.type === 'asks' ||
  (part.type === 'stepEnd' && part.isContinued === true) ||
  (part.type === 'notice' && 'approvalToken' in part.notice);

/** The end of a call that failed before its first event. */
const failure = (cause: unknown): Part => ({
  type: 'callEnd',
  by: { callId: '', agent: [] },
  end: { status: 'failed', error: toCallError(cause) },
  usage: noUsage,
});
