import { map } from 'rxjs';
import type { AgentOptions } from '../agent-options.js';
import { withOwnTools } from '../with-own-tools.js';
import type { BeforeModel } from '../events.js';
import { freezeMessage } from '../frozen.js';
import { type Interceptor, on } from '../interceptor.js';
import { characterEnd, characterStart } from '../interceptors/surrogates.js';
import {
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolResultBlock,
} from '../message.js';
import { checkOptions, type Rule, wholeNumber } from '../options.js';
import type { InputSchema } from '../schema.js';
import { toolOutput, type ToolOutput } from '../tool-output.js';
import { tool } from '../tool.js';
import { usesIn } from '../tools/suspend.js';
import type { Tool } from '../tools/types.js';
import { mediaTokens } from './count-request.js';
import { estimateText } from './estimate-tokens.js';

/** An agent that puts old large results of its tools away, and has the tool to read them again: `createAgent(withEviction({ model, tools }))`. */
export const withEviction = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  eviction: EvictionOptions = {},
): AgentOptions<Output> => {
  const own = withOwnTools(options, [readResult()]);
  return { ...own, use: [...(own.use ?? []), evictResults(eviction)] };
};

/** Characters that one reading gives. */
const most = 8_000;

/** Makes the tool by which a model reads results that `evictResults` has put away: those of its own conversation, and no others. */
const readResult = (): Tool =>
  tool({
    name: readResultName,
    idempotent: true,
    description: 'Reads a tool result that was put away, by its tool_use_id.',
    input: {
      type: 'object',
      properties: {
        tool_use_id: { type: 'string', description: 'From the marker.' },
        from: {
          type: 'integer',
          minimum: 0,
          description: 'Default: 0.',
        },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: most,
          description: `Default: ${most}.`,
        },
      },
      required: ['tool_use_id'],
    },
    run: ({ tool_use_id: id, from = 0, length = most }, context) => {
      const result = context.messages
        .flatMap((message) => (message.role === 'tool' ? message.content : []))
        .find(({ toolUseId }) => toolUseId === id);
      if (result !== undefined) return partOf(result, from, length);
      throw new Error(
        `No result has the tool_use_id ${JSON.stringify(id)}. Use the one in the marker.`,
      );
    },
  });

const partOf = (result: ToolResultBlock, from: number, length: number): ToolOutput => {
  const text = textOf(result);
  const begin = characterStart(text, Math.min(from, text.length));
  const end = characterEnd(text, Math.min(begin + length, text.length));
  const rest = end < text.length ? ` Continue with {"from": ${end}}.` : '';
  const head = `[Characters ${begin} to ${end} of ${text.length}.${rest}]\n`;
  const media = begin === 0 ? result.content.filter(isMedia) : [];
  return toolOutput({ content: [textBlock(head + text.slice(begin, end)), ...media] });
};

const isMedia = ({ type }: ContentBlock): boolean => type !== 'text';

/** Which results of tools are put away. */
export interface EvictionOptions {
  /** The newest batches of results that are never put away. Default: 3. */
  readonly keep?: number;
  /** Tokens that a result must have to be worth it. Default: 500. */
  readonly minTokens?: number;
}

const readResultName = 'read_result';

/**
 * Puts old large results of tools away, of the request only: in their place stands a marker that says what the result was, how it begins, and how
 * the tool `read_result` gives it back. Where a request does not offer that tool, nothing is put away; `withEviction` adds both. It goes in steps of `keep`
 * batches, so that at least `keep` and at most one less than twice as many are whole, and what has been put away stays so with the same words: between two steps
 * the beginning of the request does not change, and the provider's cache holds. It needs a memory that does not drop its oldest messages for that.
 */
export const evictResults = (options: EvictionOptions = {}): readonly Interceptor[] => {
  checkOptions('evictResults()', options, evictionRules);
  const { keep = 3, minTokens = 500 } = options;
  const known = new WeakMap<ToolMessage, Message>();
  const putAway = (message: ToolMessage, uses: ReturnType<typeof usesIn>): Message => {
    const evicted = known.get(message) ?? evictedOf(message, uses, minTokens);
    known.set(message, evicted);
    return evicted;
  };
  const evict = <Event extends BeforeModel>(event: Event): Event => {
    const { messages, options: request } = event;
    if (request.tools?.some(({ name }) => name === readResultName) !== true) return event;
    const batches = messages.filter((message) => message.role === 'tool');
    const old = new Set<Message>(batches.slice(0, putAwayOf(batches.length, keep)));
    if (old.size === 0) return event;
    const uses = usesIn(messages);
    return {
      ...event,
      messages: messages.map((message) =>
        message.role === 'tool' && old.has(message) ? putAway(message, uses) : message,
      ),
    };
  };
  const placed = { name: 'evictResults', priority: putAwayAt };
  return [
    on('preReasoning', map(evict), placed),
    on('preSummary', map(evict), placed),
    on('prePlanning', map(evict), placed),
  ];
};

const putAwayOf = (batches: number, keep: number): number =>
  Math.max(0, Math.floor((batches - keep) / keep) * keep);

const evictedOf = (
  message: ToolMessage,
  uses: ReturnType<typeof usesIn>,
  minTokens: number,
): Message => {
  const evicted = (result: ToolResultBlock): ToolResultBlock => {
    const text = textOf(result);
    const media = result.content.filter(({ type }) => type !== 'text').length;
    const tokens = estimateText(text) + media * mediaTokens;
    if (tokens < minTokens) return result;
    const { note: _note, details: _details, ...rest } = result;
    const name = uses.get(result.toolUseId)?.name ?? 'a tool';
    const marker = markerFor(text, media, name, result.toolUseId);
    return estimateText(marker) < tokens ? { ...rest, content: [textBlock(marker)] } : result;
  };
  const content = message.content.map(evicted);
  const isSame = content.every((result, index) => result === message.content[index]);
  return isSame ? message : freezeMessage({ ...message, content });
};

const shown = 200;

/** What comes from elsewhere is quoted as JSON: it cannot end the marker. */
const markerFor = (text: string, media: number, name: string, id: string): string => {
  const also = media === 0 ? '' : ` and ${media} media`;
  const beginning = JSON.stringify(text.slice(0, characterStart(text, shown)));
  const input = JSON.stringify({ tool_use_id: id });
  return `[A result of ${JSON.stringify(name)} has been put away: ${text.length} characters${also}. It begins with ${beginning}. Read it with ${readResultName} and ${input}.]`;
};

const evictionRules: Readonly<Record<keyof EvictionOptions, Rule>> = {
  keep: wholeNumber(1),
  minTokens: wholeNumber(1),
};

/** Behind all other interceptors, and in this order: what is put away need not be left out, and what is counted is what is sent. */
const putAwayAt = 9_000;
export const fitAt = 10_000;
