import type { ModelChunk, Usage, VendorFacts } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { at, countAt, type JsonRecord } from '@millrace/wire';
import { vendor } from './vendor-block.js';

type Chunks = readonly ModelChunk[];

/** Reads what the API reports about an answer. `message_start` reports it first, `message_delta` finally. */
export interface AnswerReports {
  /** Reads the message of `message_start`, which a repeated or late event may contain. */
  readonly start: (message: unknown) => Chunks;
  /** Reads a `message_delta`. */
  readonly end: (event: unknown) => Chunks;
}

export const createAnswerReports = (): AnswerReports => {
  /** The final counts and facts, which those of a start never replace. */
  let usage: Partial<Usage> = {};
  let facts: VendorFacts = {};
  return {
    start: (message) =>
      reportChunks(
        { ...usageOf(at(message, 'usage')), ...usage },
        { ...factsOf(message, at(message, 'usage')), ...facts },
      ),
    end: (event) => {
      const counted = usageOf(at(event, 'usage'));
      const reported = factsOf(at(event, 'delta'), at(event, 'usage'));
      usage = { ...usage, ...counted };
      facts = { ...facts, ...reported };
      return reportChunks(counted, reported);
    },
  };
};

const reportChunks = (usage: Partial<Usage>, facts: VendorFacts): Chunks => [
  ...(Object.keys(usage).length === 0 ? [] : [{ type: 'usage', usage } as const]),
  ...(Object.keys(facts).length === 0
    ? []
    : [{ type: 'facts', facts: { name: vendor, ...facts } } as const]),
];

/** Reads the usage in an event or a message, and nothing else of it. */
export const usageChunks = (data: unknown): Chunks =>
  reportChunks(usageOf(at(data, 'message', 'usage') ?? at(data, 'usage')), {});

const counters = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cacheReadTokens', 'cache_read_input_tokens'],
  ['cacheWriteTokens', 'cache_creation_input_tokens'],
] as const satisfies readonly (readonly [keyof Usage, string])[];

const usageOf = (counted: unknown): Partial<Usage> => {
  const usage: { -readonly [Key in keyof Usage]?: number } = {};
  for (const [ours, theirs] of counters) {
    const tokens = countAt(counted, theirs);
    if (tokens !== undefined) usage[ours] = tokens;
  }
  return usage;
};

const factsOf = (answer: unknown, usage: unknown): VendorFacts => {
  const [answered, counted] = [isRecord(answer) ? answer : {}, isRecord(usage) ? usage : {}];
  const details = answered['stop_details'];
  return defined({
    id: filled(answered['id']),
    model: filled(answered['model']),
    container: containerOf(answered['container']),
    reasoningTokens: countAt(counted['output_tokens_details'], 'thinking_tokens'),
    cacheWrites: countsIn(counted['cache_creation'], /^ephemeral_(.+)_input_tokens$/u),
    toolUses: countsIn(counted['server_tool_use'], /^(.+)_requests$/u),
    stopReason: filled(answered['stop_reason']),
    stopSequence: filled(answered['stop_sequence']),
    refusal: isRecord(details) ? refusalOf(details) : undefined,
    stopDetails: isRecord(details) ? details : undefined,
    serviceTier: filled(counted['service_tier']),
  });
};

const filled = (text: unknown): string | undefined =>
  typeof text === 'string' && text !== '' ? text : undefined;

const containerOf = (container: unknown): VendorFacts['container'] => {
  if (!isRecord(container)) return undefined;
  const [id, expiresAt] = [filled(container['id']), filled(container['expires_at'])];
  return id === undefined ? undefined : { id, ...(expiresAt === undefined ? {} : { expiresAt }) };
};

const refusalOf = ({ type, category, explanation }: JsonRecord): VendorFacts['refusal'] =>
  type === 'refusal'
    ? defined({ category: filled(category), explanation: filled(explanation) })
    : undefined;

/** Counts above 0, by the part of their names that the pattern captures. */
const countsIn = (
  counted: unknown,
  pattern: RegExp,
): Readonly<Record<string, number>> | undefined => {
  if (!isRecord(counted)) return undefined;
  const counts = Object.keys(counted).flatMap((key) => {
    const [, name] = pattern.exec(key) ?? [];
    const count = countAt(counted, key) ?? 0;
    return name === undefined || count === 0 ? [] : [[name, count] as const];
  });
  return counts.length === 0 ? undefined : Object.fromEntries(counts);
};
