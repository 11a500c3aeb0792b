import type { Finish, ModelChunk, VendorFacts } from 'millrace';
import { defined, isRecord } from 'millrace/values';
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

/** The facts about the answer in a finish part, and in the metadata that Anthropic adds to it. */
export const finishFacts = (part: unknown): VendorFacts => {
  const metadata = at(part, 'providerMetadata', 'anthropic');
  const details = at(metadata, 'stopDetails');
  return defined({
    reasoningTokens: countAt(part, 'usage', 'outputTokens', 'reasoning'),
    stopReason: textAt(part, 'finishReason', 'raw') || undefined,
    stopSequence: textAt(metadata, 'stopSequence') || undefined,
    container: containerIn(metadata),
    toolUses: toolUsesIn(at(metadata, 'usage', 'server_tool_use')),
    refusal: textAt(details, 'type') === 'refusal' ? refusalIn(details) : undefined,
    stopDetails: isRecord(details) ? details : undefined,
  });
};

const containerIn = (metadata: unknown): VendorFacts['container'] => {
  const id = textAt(metadata, 'container', 'id');
  const expiresAt = textAt(metadata, 'container', 'expiresAt') || undefined;
  return id === '' ? undefined : { id, ...defined({ expiresAt }) };
};

const toolUsesIn = (counts: unknown): VendorFacts['toolUses'] => {
  const uses = Object.keys(isRecord(counts) ? counts : {}).flatMap((key) => {
    const count = countAt(counts, key) ?? 0;
    return count > 0 ? [[key.replace(/_requests$/, ''), count] as const] : [];
  });
  return uses.length === 0 ? undefined : Object.fromEntries(uses);
};

const refusalIn = (details: unknown): VendorFacts['refusal'] =>
  defined({
    category: textAt(details, 'category') || undefined,
    explanation: textAt(details, 'explanation') || undefined,
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
