import type { ModelChunk, Usage } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, countAt, type JsonRecord } from '@millrace/wire';

/** The names of an API's usage fields. */
export interface UsageFields {
  readonly input: string;
  readonly inputDetails: string;
  readonly output: string;
  /** The total, if it may include tokens that the output lacks. */
  readonly total?: string;
}

export const chatUsage: UsageFields = {
  input: 'prompt_tokens',
  inputDetails: 'prompt_tokens_details',
  output: 'completion_tokens',
  total: 'total_tokens',
};

export const responsesUsage: UsageFields = {
  input: 'input_tokens',
  inputDetails: 'input_tokens_details',
  output: 'output_tokens',
};

/** Reads the available usage. Both APIs include cached tokens in the input, so these are subtracted. */
export const usageChunks = (usage: unknown, fields: UsageFields): readonly ModelChunk[] => {
  if (!isRecord(usage)) return [];
  const input = countAt(usage, fields.input);
  const outputTokens = outputOf(usage, input, fields);
  const details = at(usage, fields.inputDetails);
  // DeepSeek sends cache hits at the top level.
  const read = countAt(details, 'cached_tokens') ?? countAt(usage, 'prompt_cache_hit_tokens');
  const written = countAt(details, 'cache_write_tokens');
  const counted: Partial<Usage> = {
    ...(input === undefined
      ? {}
      : { inputTokens: Math.max(0, input - (read ?? 0) - (written ?? 0)) }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
  };
  return Object.keys(counted).length === 0 ? [] : [{ type: 'usage', usage: counted }];
};

/** Gemini counts thinking only in the total. */
const outputOf = (
  usage: JsonRecord,
  input: number | undefined,
  { output, total }: UsageFields,
): number | undefined => {
  const counted = countAt(usage, output);
  const sum = total === undefined ? undefined : countAt(usage, total);
  return sum === undefined || input === undefined ? counted : Math.max(counted ?? 0, sum - input);
};
