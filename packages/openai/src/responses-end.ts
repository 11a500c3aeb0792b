import type { Finish, ModelChunk } from '@millrace/core';
import { at, failure, textAt } from '@millrace/wire';
import { responsesUsage, usageChunks } from './usage.js';

export interface ResponseEnd {
  /** The name of the server in errors. */
  readonly server: string;
  /** Whether the response contains a refusal. */
  readonly refused: boolean;
}

/** The status of a response; some servers only send it as the type of the event. */
export const endedBy = (data: unknown): unknown =>
  at(data, 'response', 'status') ?? textAt(data, 'type').replace('response.', '');

/** Reads the usage and the finish at the end of a response. Throws a `MillraceError` if the response failed. */
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
