import type { ModelChunk } from '@millrace/core';
import { failure } from '@millrace/wire';

/** Whose answer ends, and how far it came. */
export interface FinishSource {
  /** What errors call the other side. */
  readonly server: string;
  /** The model refused, in a field of its own. */
  readonly refused: boolean;
  /** It has tool calls. */
  readonly hasCalls: boolean;
}

/**
 * Reads the finish reason of a chat completion. A reason that is not known is a `stop`: the vendor ended the answer
 * by itself. None, and the word `null`, is no finish. Throws a `MillraceError` where the vendor broke down.
 */
export const finishChunks = (
  reason: string,
  { server, refused, hasCalls }: FinishSource,
): readonly ModelChunk[] => {
  const word = reason.trim().toLowerCase();
  if (word === '' || word === 'null') return [];
  const kind = kinds.find(({ begins }) => begins.test(word))?.kind ?? 'stop';
  switch (kind) {
    case 'failed': {
      const message = `The answer ended with the finish reason '${reason}'.`;
      throw failure(server, { type: 'server_error', message });
    }
    case 'malformed':
      return [
        // The calls before the one that cannot be parsed belong to the same failed answer: they must not run.
        ...(hasCalls ? [restart] : []),
        { type: 'malformed', feedback: unreadable(reason) },
        { type: 'finish', finish: 'stop' },
      ];
    default:
      return [{ type: 'finish', finish: refused ? 'refusal' : kind }];
  }
};

const restart: ModelChunk = { type: 'restart', why: 'A tool call in the answer cannot be parsed.' };

const unreadable = (reason: string): string =>
  `Your tool call could not be read (${reason.slice(0, 500)}). Call a tool that there is, with arguments in JSON, or answer in text.`;

/** How reasons begin, in lower case. The first that fits counts. */
const kinds = [
  // Gemini: `malformed_function_call`, `function_call_filter: MALFORMED_FUNCTION_CALL`.
  {
    kind: 'malformed',
    begins: /^(?:malformed|unexpected_tool_call|function_call_filter: *(?:malformed|unexpected))/u,
  },
  // vLLM and SGLang, OpenRouter and Mistral, Gemini, DeepSeek, Zhipu.
  {
    kind: 'failed',
    begins: /^(?:abort|cancel|error|fail|other|timeout|insufficient_system|network_|server_)/u,
  },
  { kind: 'length', begins: /^(?:length|max_|model_length|model_context|repetition)/u },
  {
    kind: 'filtered',
    begins:
      /^(?:blocklist|content_filter|filtered|function_call_filter|image_|language|prohibited|recitation|safety|sensitive|spii)/u,
  },
  { kind: 'refusal', begins: /^refusal/u },
] as const;
