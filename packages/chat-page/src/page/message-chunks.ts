import { type Fields, fieldsOf, isFields, listOf, optional, textOf } from './fields.js';
import { cancelledText, dataPart, failureOf } from './message-parts.js';
import {
  type AgentPart,
  type AgentProgress,
  type AnswerUsage,
  isToolCall,
  type TextPart,
  type ToolPart,
  type UiMessage,
  type UiPart,
} from './ui-message.js';

/** A stream begins: it continues the message of this id, or adds one. */
export const withStart = (messages: readonly UiMessage[], id: string): readonly UiMessage[] => {
  const last = messages.at(-1);
  if (last?.id !== id) return [...messages, { id, role: 'assistant', parts: [] }];
  return messages.with(-1, reopened(last));
};

/** The message without its end. A call that brings results adds to what the answer has used. */
const reopened = ({ end, spent, ...open }: UiMessage): UiMessage => {
  const used = end?.reason === 'suspended' ? end.usage : spent;
  return used === undefined ? open : { ...open, spent: used };
};

/** Adds the facts of all calls of an answer that the history does not have. Its sources come first, as they did. */
export const withFacts = (
  { end: _, spent: __, ...message }: UiMessage,
  chunks: readonly unknown[],
): UiMessage => {
  const known = chunks.reduce<UiMessage>(
    (answer, chunk) =>
      fieldsOf(chunk)['type'] === 'start' ? reopened(answer) : withChunk(answer, chunk),
    message,
  );
  const isSource = ({ type }: UiPart): boolean => type === 'sources';
  // The history has the texts.
  const parts = known.parts.filter((part) => part.type !== 'text' || part.text !== '');
  return {
    ...known,
    parts: [...parts.filter(isSource), ...parts.filter((part) => !isSource(part))],
  };
};

/** Adds one chunk of a UI message stream to the message. Unknown chunks change nothing. */
export const withChunk = (message: UiMessage, chunk: unknown): UiMessage => {
  const fields = fieldsOf(chunk);
  const type = textOf(fields['type']);
  if (type.startsWith('data-')) return withData(message, type.slice('data-'.length), fields);
  switch (type) {
    case 'start-step':
      return adding(message, { type: 'step-start' });
    case 'text-start':
    case 'reasoning-start': {
      const kind = type === 'text-start' ? 'text' : 'reasoning';
      const id = textOf(fields['id']);
      return adding(message, { type: kind, id, text: '', isOpen: true, ...messageIdOf(fields) });
    }
    case 'text-delta':
    case 'reasoning-delta':
      return changing(message, hasId(fields['id']), (part) => ({
        ...part,
        text: part.text + textOf(fields['delta']),
      }));
    case 'text-end':
    case 'reasoning-end':
      return changing(message, hasId(fields['id']), (part) => ({ ...part, isOpen: false }));
    case 'file':
      return adding(message, {
        type: 'file',
        url: textOf(fields['url']),
        mediaType: textOf(fields['mediaType']),
        ...messageIdOf(fields),
      });
    case 'reset-step':
      return {
        ...message,
        parts: message.parts.slice(
          0,
          message.parts.findLastIndex((it) => it.type === 'step-start') + 1,
        ),
      };
    case 'steering-message': {
      const [part] = listOf(fields['parts']);
      return adding(message, { type: 'steered', text: textOf(fieldsOf(part)['text']) });
    }
    case 'message-metadata':
    case 'error':
    case 'abort':
    case 'finish':
      return withEnd(message, type, fields);
    default:
      return type.startsWith('tool-') ? withTool(message, type, fields) : message;
  }
};

const messageIdOf = ({ providerMetadata }: Fields) =>
  optional('messageId', fieldsOf(fieldsOf(providerMetadata)['millrace'])['messageId']);

const withoutNotice = ({ notice: _, ...message }: UiMessage): UiMessage => message;

const adding = (message: UiMessage, part: UiPart): UiMessage => ({
  ...withoutNotice(message),
  parts: [...message.parts, part],
});

/** Replaces the last part of this kind. */
const changing = <Part extends UiPart>(
  message: UiMessage,
  isIt: (part: UiPart) => part is Part,
  change: (part: Part) => UiPart,
): UiMessage => {
  const at = message.parts.findLastIndex(isIt);
  const part = message.parts[at];
  return part === undefined || !isIt(part)
    ? message
    : { ...withoutNotice(message), parts: message.parts.with(at, change(part)) };
};

const hasId =
  (id: unknown) =>
  (part: UiPart): part is TextPart =>
    (part.type === 'text' || part.type === 'reasoning') && part.id === id;

const withTool = (message: UiMessage, type: string, fields: Fields): UiMessage => {
  const { toolCallId } = fields;
  const isIt = isToolCall(toolCallId);
  const part: ToolPart = {
    type: 'tool',
    toolCallId: textOf(toolCallId),
    toolName: textOf(fields['toolName']) || 'unknown',
    state: 'input',
    inputText: '',
    ...messageIdOf(fields),
  };
  switch (type) {
    case 'tool-input-start':
      return adding(message, part);
    case 'tool-input-delta':
      return changing(message, isIt, (tool) => ({
        ...tool,
        inputText: (tool.inputText ?? '') + textOf(fields['inputTextDelta']),
      }));
    case 'tool-input-available': {
      const input = { state: 'running', input: fields['input'] } as const;
      return message.parts.some(isIt)
        ? changing(message, isIt, (tool) => ({ ...tool, ...input }))
        : adding(message, { ...part, ...input });
    }
    case 'tool-output-available': {
      const state = fields['preliminary'] === true ? 'running' : 'done';
      return changing(message, isIt, (tool) => ({ ...tool, state, output: fields['output'] }));
    }
    case 'tool-output-error': {
      const { denied } = fieldsOf(fieldsOf(fields['providerMetadata'])['millrace']);
      const errorText = textOf(fields['errorText']);
      const state = denied === true ? 'denied' : failureOf(errorText);
      return changing(message, isIt, (tool) => ({ ...tool, state, errorText }));
    }
    case 'tool-output-denied':
      return changing(message, isIt, (tool) => ({ ...tool, state: 'denied' }));
    default:
      return message;
  }
};

const withEnd = (message: UiMessage, type: string, fields: Fields): UiMessage => {
  const { end } = message;
  const closed = withoutNotice({
    ...message,
    parts: message.parts.map((part) =>
      'isOpen' in part && part.isOpen ? { ...part, isOpen: false } : part,
    ),
  });
  const metadata = fieldsOf(fields['messageMetadata']);
  const known = end?.error ?? { text: 'Something went wrong.', retryable: true };
  switch (type) {
    case 'message-metadata': {
      const { error } = metadata;
      if (!isFields(error)) return message;
      const code = optional('code', error['code']);
      return {
        ...message,
        end: { ...end, error: { ...known, ...code, retryable: error['retryable'] === true } },
      };
    }
    case 'error': {
      const text = textOf(fields['errorText']) || known.text;
      return { ...closed, end: { ...end, error: { ...known, text } } };
    }
    case 'abort': {
      const text = textOf(fields['reason']) || 'The answer was cancelled.';
      return { ...closed, end: { ...end, error: { text, retryable: true } } };
    }
    default: {
      const reason = optional('reason', metadata['reason']);
      const parts = reason.reason === 'interrupted' ? stopped(closed.parts) : closed.parts;
      const used = usageOf(metadata, message.spent);
      return { ...closed, parts, end: { ...end, ...reason, ...used } };
    }
  }
};

/** If stopping an answer has cut the tools of its last step, they have not failed by themselves: the message of the interrupt follows them. */
const stopped = (parts: readonly UiPart[]): readonly UiPart[] => {
  const isAsked = ({ toolCallId }: ToolPart): boolean =>
    parts.some(
      (it) =>
        it.type === 'approval' &&
        it.data.toolCallId === toolCallId &&
        it.data.status === 'requested',
    );
  const isCut = ({ messageId = '' }: { readonly messageId?: string }) =>
    messageId.endsWith('/interrupted');
  if (!parts.some((part) => part.type === 'text' && isCut(part))) return parts;
  const last = parts.findLastIndex(({ type }) => type === 'tool');
  const from = parts.slice(0, last + 1).findLastIndex(({ type }) => type === 'step-start');
  return parts.map((part, at) =>
    at > from && part.type === 'tool' && part.state === 'failed'
      ? isAsked(part)
        ? { ...part, state: 'cancelled', errorText: cancelledText }
        : { ...part, state: 'stopped', errorText: 'You stopped the answer before it was done.' }
      : part,
  );
};

/** The usage and the cost of a call, added to those of earlier calls of the answer. */
const usageOf = (
  { usage, cost }: Fields,
  before: AnswerUsage | undefined,
): { readonly usage?: AnswerUsage } => {
  const used = fieldsOf(usage);
  const inputTokens = numberOf(used['inputTokens']) + (before?.inputTokens ?? 0);
  const outputTokens = numberOf(used['outputTokens']) + (before?.outputTokens ?? 0);
  if (inputTokens + outputTokens === 0) return {};
  const { currency, total, atLeast } = fieldsOf(cost);
  const amount = numberOf(total ?? atLeast) + (before?.cost?.amount ?? 0);
  const isPartial = total === undefined || before?.cost?.isPartial === true;
  const priced = typeof currency === 'string' ? { cost: { currency, amount, isPartial } } : {};
  return { usage: { inputTokens, outputTokens, ...priced } };
};

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

const withData = (message: UiMessage, name: string, fields: Fields): UiMessage => {
  const data = fieldsOf(fields['data']);
  const text = noticeOf(name, data);
  if (text !== undefined) return { ...message, notice: text };
  switch (name) {
    case 'repaired':
      return message;
    case 'discarded':
      return without(message, data['messageId']);
    case 'agent-progress':
      return withProgress(message, data);
    default: {
      const part = dataPart(name, fields);
      const isSame = (other: UiPart): other is UiPart => keyOf(other) === keyOf(part);
      if (keyOf(part) === undefined || !message.parts.some(isSame)) return adding(message, part);
      return changing(message, isSame, (old) => {
        if (old.type === 'agent' && part.type === 'agent') {
          return { ...part, progress: old.progress };
        }
        return withSchema(part, old);
      });
    }
  }
};

/** A later part about a tool call, which lacks what the first one has said. */
const withSchema = (part: UiPart, old: UiPart): UiPart => {
  if (part.type === 'uncertain' && old.type === 'uncertain') {
    const { inputSchema } = old.data;
    return { ...part, data: { inputSchema, ...part.data } };
  }
  if (part.type !== 'approval' || old.type !== 'approval') return part;
  const { inputSchema, expiresAt } = old.data;
  return { ...part, data: { inputSchema, expiresAt, ...part.data } };
};

const noticeOf = (name: string, data: Fields): string | undefined => {
  switch (name) {
    case 'retry':
      return `The model did not answer. Trying again (${Number(data['attempt'])} of ${Number(data['attempts'])}) …`;
    case 'fallback':
      return 'The model did not answer. Trying another one …';
    case 'queued':
      return `Waiting for ${Number(data['ahead'])} earlier ${data['ahead'] === 1 ? 'question' : 'questions'} …`;
    case 'waiting':
      return `The model has been silent for ${Math.round(Number(data['waitedMs']) / 1_000)} s …`;
    default:
      return undefined;
  }
};

/** A later part replaces the one of the same key. */
const keyOf = (part: UiPart): string | undefined => {
  switch (part.type) {
    case 'agent':
      return `agent ${part.id}`;
    case 'approval':
    case 'suspended':
    case 'uncertain':
      return `${part.type} ${part.data.toolCallId}`;
    case 'data':
      return part.id === undefined ? undefined : `${part.name} ${part.id}`;
    default:
      return undefined;
  }
};

/** Removes what a discarded message of the model has shown. A later attempt may have the same id. */
const without = (message: UiMessage, messageId: unknown): UiMessage => {
  const gone = new Set(
    message.parts.flatMap((part) =>
      part.type === 'tool' && part.messageId === messageId ? [part.toolCallId] : [],
    ),
  );
  const isGone = (part: UiPart): boolean =>
    ('messageId' in part && part.messageId === messageId) ||
    ((part.type === 'approval' || part.type === 'suspended' || part.type === 'uncertain') &&
      gone.has(part.data.toolCallId)) ||
    (part.type === 'agent' && part.toolCallId !== undefined && gone.has(part.toolCallId));
  return { ...message, parts: message.parts.filter((part) => !isGone(part)) };
};

const withProgress = (message: UiMessage, data: Fields): UiMessage => {
  const { kind, callId, messageId, toolCallId } = data;
  const isIt = (part: UiPart): part is AgentPart => part.type === 'agent' && part.id === callId;
  return changing(message, isIt, (agent) => {
    const { progress } = agent;
    if (kind === 'discarded') {
      return { ...agent, progress: progress.filter(({ id }) => id !== messageId) };
    }
    if (kind !== 'tool' && kind !== 'text' && kind !== 'thinking') return agent;
    const id = textOf(kind === 'tool' ? toolCallId : messageId);
    const at = progress.findLastIndex((it) => it.id === id && it.kind === kind);
    const text = (progress[at]?.text ?? '') + textOf(data['delta'] ?? data['toolName']);
    const next: AgentProgress = { kind, id, text, ...optional('status', data['status']) };
    return { ...agent, progress: at === -1 ? [...progress, next] : progress.with(at, next) };
  });
};
