import type { Finish, ModelChunk, VendorFacts } from 'millrace';
import { defined } from 'millrace/values';
import { at, countAt, textAt } from '@millrace/wire';

/** The usage of a finish part. `inputTokens` of the provider interface include those of the cache. */
export const usageChunks = (usage: unknown): readonly ModelChunk[] => {
  const cacheReadTokens = countAt(usage, 'inputTokens', 'cacheRead');
  const cacheWriteTokens = countAt(usage, 'inputTokens', 'cacheWrite');
  const total = countAt(usage, 'inputTokens', 'total');
  const uncached =
    total === undefined
      ? undefined
      : Math.max(0, total - (cacheReadTokens ?? 0) - (cacheWriteTokens ?? 0));
  const counts = defined({
    inputTokens: countAt(usage, 'inputTokens', 'noCache') ?? uncached,
    outputTokens: countAt(usage, 'outputTokens', 'total'),
    cacheReadTokens,
    cacheWriteTokens,
  });
  return Object.keys(counts).length === 0 ? [] : [{ type: 'usage', usage: counts }];
};

/** The facts about the answer in a finish part. */
export const finishFacts = (part: unknown): VendorFacts =>
  defined({
    reasoningTokens: countAt(part, 'usage', 'outputTokens', 'reasoning'),
    stopReason: textAt(part, 'finishReason', 'raw') || undefined,
  });

/** The facts in a `response-metadata` part. */
export const responseFacts = (part: unknown): VendorFacts =>
  defined({ id: textAt(part, 'id') || undefined, model: textAt(part, 'modelId') || undefined });

/**
 * The finish of an answer; `undefined` if the answer is incomplete. When a stream is interrupted, providers still send a finish part:
 * with the reason `interrupted`, or with `other` and without the vendor's own reason.
 */
export const finishOf = (part: unknown): Finish | 'failed' | undefined => {
  const unified = at(part, 'finishReason', 'unified');
  const raw = at(part, 'finishReason', 'raw');
  switch (unified) {
    case 'stop':
    case 'tool-calls':
      return 'stop';
    case 'length':
      return 'length';
    case 'content-filter':
      return raw === 'refusal' ? 'refusal' : 'filtered';
    case 'error':
      return 'failed';
    case 'other':
      return typeof raw === 'string' && raw !== '' ? 'stop' : undefined;
    default:
      return undefined;
  }
};
