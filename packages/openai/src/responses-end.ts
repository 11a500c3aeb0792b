import type { Finish, ModelChunk } from '@millrace/core';
import { at, failure, textAt } from '@millrace/wire';
import { responsesUsage, usageChunks } from './usage.js';

/** Whose response ends, and how far it came. */
export interface ResponseEnd {
  /** What errors call the other side. */
  readonly server: string;
  /** The model refused, in parts of their own. */
  readonly refused: boolean;
}

/** How a response ended: some servers say so only by the event. */
export const endedBy = (data: unknown): unknown =>
  at(data, 'response', 'status') ?? textAt(data, 'type').replace('response.', '');

/** Reads the end of a response: its usage, and the finish that a status means. Throws a `MillraceError` where it failed. */
export const endChunks = (
  response: unknown,
  status: unknown,
  { refused, server }: ResponseEnd,
): readonly ModelChunk[] => {
  const usage = usageChunks(at(response, 'usage'), responsesUsage);
  switch (status) {
    case 'completed':
      return [...usage, { type: 'finish', finish: refused ? 'refusal' : 'stop' }];
    case 'incomplete':
      return [...usage, { type: 'finish', finish: cutBy(response) }];
    case 'failed':
      throw failed(server, response);
    default:
      return usage;
  }
};

const cutBy = (response: unknown): Finish =>
  at(response, 'incomplete_details', 'reason') === 'content_filter' ? 'filtered' : 'length';

const failed = (server: string, response: unknown): Error => {
  const error = at(response, 'error');
  const message = textAt(error, 'message') || 'The response failed.';
  return failure(server, { code: textAt(error, 'code') || 'server_error', message });
};
