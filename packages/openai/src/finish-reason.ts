import type { ModelChunk } from 'millrace';
import { failure, missingCall } from '@millrace/wire';

export interface FinishSource {
  /** The name of the server in errors. */
  readonly server: string;
  /** Whether the answer contains a `refusal`. */
  readonly refused: boolean;
  readonly hasCalls: boolean;
}

/**
 * Maps the finish reason of a chat completion. An unknown reason counts as `stop`, because the vendor ended the answer
 * itself. An empty reason and the string `null` are ignored. If it announces a tool call that the answer does not have, the model is
 * asked again, unless the call follows. Throws a `MillraceError` if the vendor failed.
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
        // The calls before the malformed one belong to the same failed answer: they must not run.
        ...(hasCalls ? [restart] : []),
        { type: 'malformed', feedback: unreadable(reason) },
        { type: 'finish', finish: 'stop' },
      ];
    default: {
      const isMissing = announcesCall.test(word) && !hasCalls && !refused;
      return [
        ...(isMissing ? [missingCall] : []),
        { type: 'finish', finish: refused ? 'refusal' : kind },
      ];
    }
  }
};

const announcesCall = /^(?:tool_calls?|tool_use|function_calls?)$/u;

const restart: ModelChunk = { type: 'restart', why: 'A tool call in the answer cannot be parsed.' };

const unreadable = (reason: string): string =>
  `Your tool call could not be parsed (${reason.slice(0, 500)}). Call an available tool with JSON arguments, or answer with text.`;

/** Prefixes of reasons, in lowercase. The first match counts. */
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
