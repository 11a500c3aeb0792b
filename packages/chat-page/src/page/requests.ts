import {
  isToolCall,
  type SettledAs,
  type ToolOutcome,
  type UiMessage,
  type UiPart,
  waitingIn,
} from './ui-message.js';

export const textPart = (text: string): UiPart => ({ type: 'text', text, isOpen: false });

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
      case 'suspended': {
        const { given: _, ...data } = part.data;
        return [{ type: 'data-suspended', id: data.toolCallId, data }];
      }
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

const withParts = (message: UiMessage, change: (part: UiPart) => UiPart): UiMessage => ({
  ...message,
  parts: message.parts.map(change),
});

/** The message with the user's answer to a suspended tool call, which is sent with those to the others; with `undefined`, it has none again. */
export const withGiven = (
  message: UiMessage,
  toolCallId: string,
  given: ToolOutcome | undefined,
): UiMessage =>
  withParts(message, (part) =>
    part.type === 'suspended' && part.data.toolCallId === toolCallId
      ? { ...part, data: { ...part.data, given } }
      : part,
  );

/** The message with the answers to its suspended tool calls as their results. */
export const withResults = (message: UiMessage): UiMessage =>
  waitingIn(message).reduce(
    (answered, { given }) => (given === undefined ? answered : withResult(answered, given)),
    message,
  );

const withResult = (message: UiMessage, outcome: ToolOutcome): UiMessage =>
  withParts(message, (part) =>
    !isToolCall(outcome.toolCallId)(part)
      ? part
      : outcome.type === 'result'
        ? { ...part, state: 'done', output: outcome.output }
        : { ...part, state: 'failed', errorText: outcome.errorText },
  );

/** The message with the outcome of uncertain tool calls; with `undefined`, it has none again. */
export const withOutcome = (
  message: UiMessage,
  toolCallIds: readonly string[],
  outcome: SettledAs | undefined,
): UiMessage =>
  withParts(message, (part) =>
    part.type === 'uncertain' && toolCallIds.includes(part.data.toolCallId)
      ? { ...part, data: { ...part.data, outcome, isSent: false } }
      : part,
  );

/** The message whose outcomes the server gets now. */
export const withSent = (message: UiMessage): UiMessage =>
  withParts(message, (part) =>
    part.type === 'uncertain' && part.data.outcome !== undefined
      ? { ...part, data: { ...part.data, isSent: true } }
      : part,
  );
