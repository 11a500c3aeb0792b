import type { ModelChunk, Usage } from '@millrace/core';
import { isRecord } from '@millrace/wire';
import { at, countAt } from './json.js';

/** Where a wire puts its counts. */
export interface UsageFields {
  readonly input: string;
  readonly inputDetails: string;
  readonly output: string;
}

/** The counts of chat completions. */
export const chatUsage: UsageFields = {
  input: 'prompt_tokens',
  inputDetails: 'prompt_tokens_details',
  output: 'completion_tokens',
};

/** The counts of responses. */
export const responsesUsage: UsageFields = {
  input: 'input_tokens',
  inputDetails: 'input_tokens_details',
  output: 'output_tokens',
};

/** Reads usage, as far as it is told. What the cache gave or took is counted in the input by both wires, and taken out. */
export const usageChunks = (usage: unknown, fields: UsageFields): readonly ModelChunk[] => {
  if (!isRecord(usage)) return [];
  const input = countAt(usage, fields.input);
  const outputTokens = countAt(usage, fields.output);
  const details = at(usage, fields.inputDetails);
  // DeepSeek counts hits at the top.
  const read = countAt(details, 'cached_tokens') ?? countAt(usage, 'prompt_cache_hit_tokens');
  const written = countAt(details, 'cache_write_tokens');
  const told: Partial<Usage> = {
    ...(input === undefined
      ? {}
      : { inputTokens: Math.max(0, input - (read ?? 0) - (written ?? 0)) }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
  };
  return Object.keys(told).length === 0 ? [] : [{ type: 'usage', usage: told }];
};
