import { tool } from '../../tools/tool.js';
import type { Tool, ToolContext } from '../../tools/types.js';
import { toolCallsOf } from '../../values/message.js';
import { toolOutput, type ToolOutput } from '../../values/tool-output.js';
import { numbered, type RetrievedPassage, type Retriever } from './passages.js';
import { jsonSchema } from '../../schema/index.js';
import { checkOptions, having, isText, type Rule, wholeNumber } from '../../values/options.js';
import { isRecord } from '../../values/json.js';
import { untrustedText } from '../../values/untrusted-text.js';
import { defer, map, take } from 'rxjs';

/** Options of `retrieverTool`. */
export interface RetrieverToolOptions {
  /** Must be unique among the tools of an agent. Default: `search_knowledge`. */
  readonly name?: string | undefined;
  /** Describes the topic of the documents to the model. Default: a description of any documents. */
  readonly description?: string | undefined;
  /** The maximum number of passages per search. Default: 5. */
  readonly limit?: number | undefined;
  /** The maximum length of a passage in characters; the rest is left out. Default: 2,000. */
  readonly passageLength?: number | undefined;
}

/**
 * Creates a tool with which the model searches any retriever. Passages are quoted and numbered; the numbers continue from
 * one search to the next, so an answer can cite each by its own. Its `details` have the query, the number of the first
 * passage and the passages. Partial failures of the retriever are part of the result.
 */
export const retrieverTool = (retriever: Retriever, options: RetrieverToolOptions = {}): Tool => {
  checkOptions('retrieverTool()', { retriever, ...options }, rules, ['retriever']);
  const { name = 'search_knowledge', description = defaultDescription } = options;
  const { limit = 5, passageLength = 2_000 } = options;
  const counter = createCounter(name);
  return tool({
    name,
    description,
    idempotent: true,
    input: jsonSchema({
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 1_000,
          description: 'What to search for: a question, or a few specific keywords.',
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: ({ query }, context) =>
      defer(() => {
        const warnings: string[] = [];
        const report = (warning: string): void => void warnings.push(warning);
        return retriever.retrieve$({ text: query, limit, report }).pipe(
          take(1),
          map((found) => found.slice(0, limit).map((it) => shortened(it, passageLength))),
          map((passages) => {
            const first = counter.take(context, passages.length);
            return outputOf({ query, first, passages }, warnings);
          }),
        );
      }),
  });
};

const defaultDescription =
  'Searches the documents and returns the passages that fit best, each with a number and its source. Use it before you ' +
  'answer a question that the documents may answer, and put the number of a passage after each statement that is based on it.';

const rules: Readonly<Record<keyof RetrieverToolOptions | 'retriever', Rule>> = {
  retriever: having('retrieve$', 'a Retriever: an object with retrieve$(query)'),
  name: isText,
  description: isText,
  limit: wholeNumber(1),
  passageLength: wholeNumber(1),
};

interface Details {
  readonly query: string;
  /** The number of the first passage. */
  readonly first: number;
  readonly passages: readonly RetrievedPassage[];
}

const outputOf = (details: Details, warnings: readonly string[]): ToolOutput => {
  const { query, first, passages } = details;
  // `numbered` counts from 1. A quoted line starts with >, so only the lines with numbers start with a bracket.
  const text = numbered(passages).replace(
    /^\[(\d+)\] /gmu,
    (_, number: string) => `[${Number(number) + first - 1}] `,
  );
  const nothing = `Nothing was found for '${query.slice(0, 200)}'. Try other words.`;
  return toolOutput({
    content: [...warnings.map((it) => untrustedText(it)), text === '' ? nothing : text].join(
      '\n\n',
    ),
    details,
  });
};

const shortened = (passage: RetrievedPassage, most: number): RetrievedPassage => {
  const { text, span } = passage;
  if (text.length <= most) return passage;
  const kept = text.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  const { from = 0 } = span ?? {};
  return { ...passage, text: kept, ...(span && { span: { ...span, to: from + kept.length } }) };
};

// ---------------------------------------------------------------- numbers

/** Calls that are remembered, for searches of one message: these do not see each other's results. */
const maxCalls = 1_000;

/** Hands out numbers that no earlier result of the conversation has, also after a restart. */
const createCounter = (name: string) => {
  const last = new Map<string, number>();
  return {
    take: ({ callId, messages }: ToolContext, count: number): number => {
      const before = Math.max(last.get(callId) ?? 0, lastNumberIn(messages, name));
      last.delete(callId);
      last.set(callId, before + count);
      const [oldest] = last.keys();
      if (last.size > maxCalls && oldest !== undefined) last.delete(oldest);
      return before + 1;
    },
  };
};

const lastNumberIn = (messages: ToolContext['messages'], name: string): number => {
  const own = new Set<string>();
  let most = 0;
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const call of toolCallsOf(message)) if (call.name === name) own.add(call.id);
    }
    if (message.role !== 'tool') continue;
    for (const { toolCallId, content } of message.content) {
      if (!own.has(toolCallId)) continue;
      for (const block of content) {
        if (block.type !== 'text') continue;
        for (const [, number] of block.text.matchAll(/^\[(\d{1,9})\] /gmu)) {
          most = Math.max(most, Number(number));
        }
      }
    }
  }
  return most;
};

/**
 * Returns the passages in `postActing` events of retriever tools, at the place of their numbers: `citationsIn(textOf(reply),
 * citableIn(events, [search]))`. Other tools are skipped: their details may be data of a server, which must not become sources.
 */
export const citableIn = (
  events: Iterable<{ toolCall: { readonly name: string }; result: { readonly details?: unknown } }>,
  tools: readonly Pick<Tool, 'name'>[],
): readonly RetrievedPassage[] => {
  const passages: RetrievedPassage[] = [];
  for (const { toolCall, result } of events) {
    const { details } = result;
    if (!tools.some(({ name }) => name === toolCall.name) || !isDetails(details)) continue;
    details.passages.forEach((it, at) => (passages[details.first - 1 + at] = it));
  }
  return passages;
};

const isDetails = (value: unknown): value is Details =>
  isRecord(value) && Number.isSafeInteger(value['first']) && Array.isArray(value['passages']);
