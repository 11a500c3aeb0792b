import type { AgentEvent } from 'millrace';
import type { OperatorFunction } from 'rxjs';
import type { Masks } from '../masks.js';
import { type ClientResultOptions, withoutClientResults } from './client-results.js';
import type { Part } from './part.js';
import { encodedBy, toParts } from './to-parts.js';
import { type StreamApprovals, withApprovalTokens } from './with-approval-tokens.js';

export type EncodingOptions = StreamApprovals & ClientResultOptions;

/** Encodes the events of calls, for clients that decide on approvals and bring results. Always completes, as `encodedBy`. */
export const encodeParts = <Chunk extends object>(
  options: EncodingOptions,
  masks: Masks,
  encode: (part: Part) => readonly Chunk[],
): OperatorFunction<AgentEvent, Chunk> => {
  const parts = toParts(masks);
  return encodedBy(
    (event$) =>
      event$.pipe(
        options.asking?.through(parts) ?? parts,
        withoutClientResults(options),
        withApprovalTokens(options),
      ),
    (part) => {
      const chunks = encode(part);
      if (isFromQueue(part)) chunks.forEach((chunk) => placeless.add(chunk));
      return chunks;
    },
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
