import { MillraceError, type ModelChunk } from 'millrace';
import { at, type JsonRecord } from '@millrace/wire';
import { headerIn } from './provider-error.js';
import { finishOf } from './read-usage.js';

type Chunks = readonly ModelChunk[];

/** How one answer ends. */
export interface AnswerEnd {
  /** Takes the headers of the response: they explain an answer without events. */
  readonly open: (headers: unknown) => void;
  /** Takes each part, and what was read from it. */
  readonly note: (part: JsonRecord, chunks: Chunks) => void;
  /** Whether there was a finish part. */
  readonly isFinished: () => boolean;
  /**
   * The finish of the answer. Throws `invalidResponse` if it is incomplete. `missing` are the ids of tool calls that started, and
   * did not arrive.
   */
  readonly close: (missing: readonly string[]) => Chunks;
}

export const isFinishPart = (part: unknown): boolean => at(part, 'type') === 'finish';

/** Follows one answer to its end: only a finish part with a reason of the vendor completes it. */
export const createAnswerEnd = (vendor: string): AnswerEnd => {
  let finished: JsonRecord | undefined;
  let contentType = '';
  let hasParts = false;
  let hasCalls = false;
  return {
    open: (headers) => {
      contentType = headerIn(headers, 'content-type');
    },
    note: (part, chunks) => {
      if (isFinishPart(part)) finished = part;
      else hasParts ||= part['type'] !== 'stream-start';
      hasCalls ||= chunks.some(({ type }) => type === 'toolCall' || type === 'block');
    },
    isFinished: () => finished !== undefined,
    close: (missing) => {
      const finish = finished === undefined ? undefined : finishOf(finished);
      if (finish === 'failed') throw ended(vendor, 'failed: its stream ended with an error');
      if (finish === undefined) {
        if (!hasParts && /\b(json|html)\b/i.test(contentType))
          throw notStreamed(vendor, contentType);
        throw ended(vendor, 'is incomplete: its stream ended without a finish reason');
      }
      if (finish === 'stop' && missing.length > 0) {
        throw ended(vendor, 'is incomplete: a tool call started, and did not end');
      }
      if (!hasCalls && at(finished, 'finishReason', 'unified') === 'tool-calls') {
        throw ended(
          vendor,
          'is incomplete: it ends with tool calls, but its AI SDK package read none',
        );
      }
      return [{ type: 'finish', finish }];
    },
  };
};

const ended = (vendor: string, what: string): MillraceError =>
  new MillraceError('invalidResponse', `The answer from ${vendor} ${what}.`, { retryable: true });

const notStreamed = (vendor: string, contentType: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The answer from ${vendor} is not a stream: its content type is '${contentType.slice(0, 60)}'. Check the base URL of the provider.`,
    { retryable: false },
  );
