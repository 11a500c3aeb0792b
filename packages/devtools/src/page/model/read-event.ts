// Reads fields of events that the page does not know by type. They come from a log, which may be of another version.
import type { ShownEvent } from '../protocol.js';

export type Fields = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The text of a message or a tool result. Other content is named in brackets. */
export const textIn = (message: unknown): string =>
  listOf(fieldsOf(message)['content'])
    .map(fieldsOf)
    .map(({ type, text }) =>
      type === 'text'
        ? stringOf(text)
        : type === 'thinking' || type === 'tool_call' || type === 'tool_result'
          ? ''
          : `[${stringOf(type)}]`,
    )
    .join('');

export interface ToolCallIn {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** The tool calls of a message of the assistant, in order. */
export const toolCallsIn = (message: unknown): readonly ToolCallIn[] =>
  listOf(fieldsOf(message)['content'])
    .map(fieldsOf)
    .filter(({ type }) => type === 'tool_call')
    .map(toolCallIn);

export const toolCallIn = (value: unknown): ToolCallIn => {
  const { id, name, input } = fieldsOf(value);
  return { id: stringOf(id), name: stringOf(name), input };
};

/** The messages of a request or an input. */
export const messagesIn = (value: unknown): readonly Fields[] => listOf(value).map(fieldsOf);

/** The tokens of a request or a call. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** Read from the provider's cache. */
  readonly cached: number;
}

export const noTokens: Tokens = { input: 0, output: 0, cached: 0 };

export const tokensIn = (usage: unknown): Tokens => {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = fieldsOf(usage);
  return {
    input: numberOf(inputTokens) + numberOf(cacheWriteTokens),
    output: numberOf(outputTokens),
    cached: numberOf(cacheReadTokens),
  };
};

export const addTokens = (a: Tokens, b: Tokens): Tokens => ({
  input: a.input + b.input,
  output: a.output + b.output,
  cached: a.cached + b.cached,
});

export const errorIn = (value: unknown): { readonly code: string; readonly message: string } => {
  const { code, message } = fieldsOf(value);
  return {
    code: stringOf(code) || 'unknown',
    message: stringOf(message) || (typeof value === 'string' ? value : ''),
  };
};

/** The id of the step that made a message, such as `2`; `undefined` if it is a message of another call. */
export const stepOfMessage = (callId: string, messageId: string): string | undefined =>
  messageId.startsWith(`${callId}/`)
    ? messageId.slice(callId.length + 1).replace(/[+~#].*$/u, '')
    : undefined;

/** An event with the names of its type erased: features add types of their own. */
export const anyFields = (event: ShownEvent): Fields => event;

/** An event with some fields changed. */
export const withFields = (event: ShownEvent, fields: Fields): ShownEvent => {
  const changed: unknown = { ...event, ...fields };
  return isEvent(changed) ? changed : event;
};

const isEvent = (value: unknown): value is ShownEvent =>
  isRecord(value) && typeof value['type'] === 'string';
