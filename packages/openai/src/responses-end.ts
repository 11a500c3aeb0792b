import type { Finish, ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, failure, faultOf, textAt } from '@millrace/wire';
import { responsesFacts } from './facts.js';
import { responsesUsage, usageChunks } from './usage.js';
import type { ReaderSource } from './wire-model.js';

/** The status of a response; some servers only send it as the type of the event. */
export const endedBy = (data: unknown): unknown =>
  at(data, 'response', 'status') ?? textAt(data, 'type').replace('response.', '');

export interface ResponseEnd {
  /** The usage, and what the vendor reports about the answer. */
  readonly chunks: readonly ModelChunk[];
  /** Absent if the status is not an end. */
  readonly finish: Finish | undefined;
}

/** Reads the usage and the finish at the end of a response. Throws a `MillraceError` if the response failed. */
export const endChunks = (
  response: unknown,
  status: unknown,
  { server, vendor }: Pick<ReaderSource, 'server' | 'vendor'>,
): ResponseEnd => {
  const reported = isRecord(at(response, 'error')) ? faultOf(response) : undefined;
  if (status === 'failed' || reported !== undefined) throw failed(server, response);
  const usage = usageChunks(at(response, 'usage'), responsesUsage);
  const chunks = [...usage, ...responsesFacts(response, vendor)];
  switch (status) {
    case 'completed': {
      const isWhole = textAt(at(response, 'incomplete_details'), 'reason') === '';
      return { chunks, finish: isWhole ? 'stop' : cutBy(response) };
    }
    case 'incomplete':
      return { chunks, finish: cutBy(response) };
    default:
      return { chunks: usage, finish: undefined };
  }
};

const cutBy = (response: unknown): Finish =>
  at(response, 'incomplete_details', 'reason') === 'content_filter' ? 'filtered' : 'length';

const failed = (server: string, response: unknown): Error => {
  const error = at(response, 'error');
  const message = textAt(error, 'message') || 'The response failed.';
  return failure(server, { code: textAt(error, 'code') || 'server_error', message });
};
