import { isToolCall, type SettledAs, type UiMessage, type UiPart } from './ui-message.js';

export const textPart = (text: string): UiPart => ({ type: 'text', text, isOpen: false });

/** A question with another text, and its files. */
export const withText = (question: UiMessage, text: string): readonly UiPart[] => [
  textPart(text),
  ...question.parts.filter(({ type }) => type === 'file'),
];

/** The question, and the message that the conversation continues after. The server knows the messages before that one. */
export const placed = (before: readonly UiMessage[], question: UiMessage) => ({
  messages: [
    ...before.slice(-1).map(({ id, role }) => ({ id, role, parts: [] })),
    requestOf(question),
  ],
});

/** A message in the protocol of the AI SDK. */
export const requestOf = ({ id, role, parts }: UiMessage): object => ({
  ...{ id, role },
  parts: parts.flatMap((part): readonly object[] => {
    switch (part.type) {
      case 'text':
        return [{ type: 'text', text: part.text }];
      case 'file':
      case 'step-start':
        return [part];
      case 'suspended':
        return [{ type: 'data-suspended', id: part.data.toolCallId, data: part.data }];
      case 'tool': {
        const { toolName, toolCallId, input, output, errorText } = part;
        const state = part.state === 'done' ? 'output-available' : 'output-error';
        return part.state === 'done' || part.state === 'failed'
          ? [{ type: `tool-${toolName}`, toolCallId, state, input, output, errorText }]
          : [];
      }
      default:
        return [];
    }
  }),
});

/** The result of a suspended tool call, or the reason for its failure. */
export type ToolOutcome =
  | { readonly type: 'result'; readonly toolCallId: string; readonly output: unknown }
  | { readonly type: 'failure'; readonly toolCallId: string; readonly errorText: string };

export const withResult = (message: UiMessage, outcome: ToolOutcome): UiMessage => ({
  ...message,
  parts: message.parts.map((part) =>
    !isToolCall(outcome.toolCallId)(part)
      ? part
      : outcome.type === 'result'
        ? { ...part, state: 'done', output: outcome.output }
        : { ...part, state: 'failed', errorText: outcome.errorText },
  ),
});

/** The message with the outcome of uncertain tool calls; with `undefined`, it has none again. */
export const withOutcome = (
  message: UiMessage,
  toolCallIds: readonly string[],
  outcome: SettledAs | undefined,
): UiMessage => ({
  ...message,
  parts: message.parts.map((part) =>
    part.type === 'uncertain' && toolCallIds.includes(part.data.toolCallId)
      ? { ...part, data: { ...part.data, outcome } }
      : part,
  ),
});
