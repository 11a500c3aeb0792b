import type { AgentOptions } from '../agent-options.js';
import type { InputSchema } from '../schema.js';
import { withOwnTools } from '../with-own-tools.js';
import { evictResults, type EvictionOptions, readResultName } from './evict-results.js';
import { characterEnd, characterStart } from '../interceptors/surrogates.js';
import { type ContentBlock, textBlock, textOf, type ToolResultBlock } from '../message.js';
import { tool } from '../tool.js';
import { toolOutput, type ToolOutput } from '../tool-output.js';
import type { Tool } from '../tools/types.js';

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
