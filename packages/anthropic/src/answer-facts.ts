import type { ModelChunk, Usage, VendorFacts } from '@millrace/core';
import { defined, isRecord } from '@millrace/core/values';
import { at, countAt, textAt } from '@millrace/wire';
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

const counters = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cacheReadTokens', 'cache_read_input_tokens'],
  ['cacheWriteTokens', 'cache_creation_input_tokens'],
] as const satisfies readonly (readonly [keyof Usage, string])[];

const usageOf = (counted: unknown): Partial<Usage> =>
  Object.fromEntries(
    counters.flatMap(([ours, theirs]) => {
      const tokens = countAt(counted, theirs);
      return tokens === undefined ? [] : [[ours, tokens] as const];
    }),
  );

const factsOf = (answer: unknown, usage: unknown): VendorFacts => {
  const details = at(answer, 'stop_details');
  return defined({
    id: filled(textAt(answer, 'id')),
    model: filled(textAt(answer, 'model')),
    container: containerOf(at(answer, 'container')),
    reasoningTokens: countAt(usage, 'output_tokens_details', 'thinking_tokens'),
    cacheWrites: countsIn(at(usage, 'cache_creation'), /^ephemeral_(.+)_input_tokens$/u),
    toolUses: countsIn(at(usage, 'server_tool_use'), /^(.+)_requests$/u),
    stopReason: filled(textAt(answer, 'stop_reason')),
    stopSequence: filled(textAt(answer, 'stop_sequence')),
    refusal: refusalOf(details),
    stopDetails: isRecord(details) ? details : undefined,
    serviceTier: filled(textAt(usage, 'service_tier')),
  });
};

const filled = (text: string): string | undefined => (text === '' ? undefined : text);

const containerOf = (container: unknown): VendorFacts['container'] => {
  const id = textAt(container, 'id');
  const expiresAt = filled(textAt(container, 'expires_at'));
  return id === '' ? undefined : { id, ...(expiresAt === undefined ? {} : { expiresAt }) };
};

const refusalOf = (details: unknown): VendorFacts['refusal'] =>
  at(details, 'type') === 'refusal'
    ? defined({
        category: filled(textAt(details, 'category')),
        explanation: filled(textAt(details, 'explanation')),
      })
    : undefined;

/** Counts above 0, by the part of their names that the pattern captures. */
const countsIn = (
  counted: unknown,
  pattern: RegExp,
): Readonly<Record<string, number>> | undefined => {
  const counts = Object.keys(isRecord(counted) ? counted : {}).flatMap((key) => {
    const [, name] = pattern.exec(key) ?? [];
    const count = countAt(counted, key) ?? 0;
    return name === undefined || count === 0 ? [] : [[name, count] as const];
  });
  return counts.length === 0 ? undefined : Object.fromEntries(counts);
};
