import {
  type AssistantMessage,
  type Block,
  type Message,
  textOf,
  type ToolCallBlock,
  toolCallsOf,
  type ToolResultBlock,
} from 'millrace';
import { isUncertain } from 'millrace/journal';
import { millrace, resultIdOf } from '../ag-ui/metadata.js';
import { mediaPart } from '../ag-ui/part-events.js';
import { fileOf, sourceOf } from '../ai-sdk/message-chunks.js';
import type { ToolCallData } from '../ai-sdk/ui-message-chunk.js';
import { isForClient } from '../inbound.js';
import { callOf } from './answers.js';
import { citationsIn, isMedia } from '../parts/shown-message.js';
import { plainJson } from '../plain-json.js';
import { outputOf } from '../tool-result.js';

/** A message of a conversation, as the AI SDK keeps it. */
export interface HistoryUiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly HistoryUiPart[];
}

export interface HistoryUiPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The client's id of the last message of a path, for clients of the AI SDK. */
export const shownIdOf = (path: readonly Message[]): string | undefined =>
  toUiMessages(path).at(-1)?.id;

/**
 * A conversation as a client of the AI SDK has it: one message for each question, and one for each answer, whose id is
 * that of its first call. Failed tools only say that they failed.
 */
export const toUiMessages = (messages: readonly Message[]): readonly HistoryUiMessage[] => {
  const shown: HistoryUiMessage[] = [];
  const results = resultsIn(messages);
  let answer: HistoryUiPart[] | undefined;
  for (const message of messages) {
    const before = shown.at(-1);
    if (message.role === 'user' && answer !== undefined && before?.id === callOf(message.id)) {
      // The message was steered into the running call.
      const data = { messageId: message.id, text: textOf(message) };
      answer.push({ type: 'data-steered', data });
    } else if (message.role === 'user') {
      shown.push({ id: message.id, role: 'user', parts: message.content.flatMap(shownBlock) });
      answer = undefined;
    } else if (message.role === 'assistant') {
      if (answer === undefined) {
        answer = [];
        shown.push({ id: callOf(message.id), role: 'assistant', parts: answer });
      }
      answer.push({ type: 'step-start' }, ...partsOf(message, results));
    }
  }
  return shown;
};

const partsOf = (message: AssistantMessage, results: Results): readonly HistoryUiPart[] => {
  const { id: messageId, content } = message;
  const sources = citationsIn(content).map((citation, index) =>
    sourceOf(citation, `${messageId}/source/${index + 1}`, { messageId }),
  );
  const parts = content.flatMap((block): readonly HistoryUiPart[] =>
    block.type === 'tool_call' ? toolParts(message, block, results) : shownBlock(block),
  );
  return [...parts, ...sources];
};

const shownBlock = (block: Block): readonly HistoryUiPart[] => {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [{ type: 'text', text: block.text, state: 'done' }];
    case 'thinking':
      return block.text === '' ? [] : [{ type: 'reasoning', text: block.text, state: 'done' }];
    case 'image':
    case 'audio':
    case 'file':
      return isMedia(block)
        ? [{ type: 'file', ...fileOf(block), ...('name' in block && { filename: block.name }) }]
        : [];
    default:
      return [];
  }
};

const toolParts = (
  message: AssistantMessage,
  toolCall: ToolCallBlock,
  results: Results,
): readonly HistoryUiPart[] => {
  const { id: localId, name: toolName, input, invalidInput } = toolCall;
  const toolCallId = toolIdOf(message, toolCall);
  const part = {
    type: `tool-${toolName === '' ? 'unknown' : toolName}`,
    toolCallId,
    input: plainJson(invalidInput ?? input),
  };
  const result = results.get(toolCallId);
  return [
    { ...part, ...outcomeOf(result) },
    ...waitOf({ toolCallId, toolName, localId }, result?.waited),
  ];
};

const outcomeOf = (result: ToolResultBlock | undefined): object => {
  if (result?.suspended !== undefined) return { state: 'input-available' };
  if (result === undefined || result.isError) {
    return { state: 'output-error', errorText: result?.cancelled ? cancelled : failed };
  }
  return { state: 'output-available', output: outputOf(result) };
};

/** The part for the wait of a tool call, also after it: a client shows the question with its answer. */
const waitOf = (
  toolCall: ToolCallData,
  waited: Suspended | undefined,
): readonly HistoryUiPart[] => {
  if (waited === undefined) return [];
  const { toolCallId: id } = toolCall;
  if (isUncertain(waited)) return [{ type: 'data-uncertain', id, data: toolCall }];
  if (!isForClient(waited)) return [];
  const data = { ...toolCall, request: plainJson(waited.request) };
  return [{ type: 'data-suspended', id, data }];
};

const failed = 'The tool failed.';
const cancelled = 'The tool call was cancelled.';

const toolIdOf = ({ id }: AssistantMessage, toolCall: ToolCallBlock): string =>
  `${id}/${toolCall.id}`;

type Results = ReadonlyMap<string, Result>;

/** A result, and what its tool call has waited for. */
type Result = ToolResultBlock & { readonly waited?: Suspended | undefined };
type Suspended = NonNullable<ToolResultBlock['suspended']>;

/**
 * The results by the client's ids of their tool calls. A later one replaces that of a suspended tool call. A question cancels those that wait:
 * while its call runs, the messages do not have their error results yet.
 */
const resultsIn = (messages: readonly Message[]): Results => {
  const latest = new Map<string, string>();
  const results = new Map<string, Result>();
  messages.forEach((message, at) => {
    if (message.role === 'assistant') {
      for (const toolCall of toolCallsOf(message)) {
        latest.set(toolCall.id, toolIdOf(message, toolCall));
      }
    } else if (message.role === 'tool') {
      for (const result of message.content) {
        const id = latest.get(result.toolCallId);
        if (id === undefined) continue;
        results.set(id, { ...result, waited: result.suspended ?? results.get(id)?.waited });
      }
    } else if (callOf(message.id) !== callOf(messages[at - 1]?.id ?? '')) {
      for (const [id, result] of results) results.set(id, unlessOpen(result));
    }
  });
  return results;
};

const unlessOpen = ({ suspended, ...result }: Result): Result =>
  suspended === undefined ? result : { ...result, isError: true, cancelled: [result.toolCallId] };

/** The answer in a client that has brought results of its tools. */
export interface Client {
  readonly messageId?: string;
  readonly clientResults?: readonly string[];
}

/** The message of a client with the tool calls that have these results. */
export const clientOf = (
  messages: readonly HistoryUiMessage[],
  results: readonly string[],
): Client => {
  const isOne = ({ toolCallId }: HistoryUiPart): boolean =>
    typeof toolCallId === 'string' && results.some((id) => toolCallId.endsWith(`/${id}`));
  const message = messages.findLast(({ parts }) => parts.some(isOne));
  return { clientResults: results, ...(message && { messageId: message.id }) };
};

export interface AgUiMessage {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** A conversation as a client of AG-UI has it. */
export const toAgUiMessages = (messages: readonly Message[]): readonly AgUiMessage[] => {
  const results = resultsIn(messages);
  return messages.flatMap((message): readonly AgUiMessage[] => {
    switch (message.role) {
      case 'user':
        return [{ id: message.id, role: 'user', content: agUiContent(message.content) }];
      case 'assistant':
        return agUiAnswer(message, results);
      case 'tool':
        return [];
    }
  });
};

const agUiAnswer = (message: AssistantMessage, results: Results): readonly AgUiMessage[] => {
  const thoughts = message.content.flatMap((block) =>
    block.type === 'thinking' && block.text !== '' ? [block.text] : [],
  );
  const uses = toolCallsOf(message);
  const text = textOf(message);
  return [
    ...(thoughts.length === 0
      ? []
      : [{ id: `${message.id}/thinking`, role: 'reasoning', content: thoughts.join('\n\n') }]),
    {
      id: message.id,
      role: 'assistant',
      ...(text === '' ? {} : { content: text }),
      ...(uses.length === 0 ? {} : { toolCalls: uses.map((use) => agUiToolCall(message, use)) }),
    },
    ...uses.flatMap((use) => {
      const toolCallId = toolIdOf(message, use);
      const result = results.get(toolCallId);
      return result === undefined || result.suspended !== undefined
        ? []
        : [agUiResult(toolCallId, result)];
    }),
  ];
};

const agUiToolCall = (message: AssistantMessage, toolCall: ToolCallBlock): object => ({
  id: toolIdOf(message, toolCall),
  type: 'function',
  function: {
    name: toolCall.name === '' ? 'unknown' : toolCall.name,
    arguments: toolCall.invalidInput ?? JSON.stringify(toolCall.input),
  },
});

const agUiResult = (toolCallId: string, result: ToolResultBlock): AgUiMessage => ({
  id: resultIdOf(toolCallId),
  role: 'tool',
  toolCallId,
  content: result.isError ? failed : textOf(result),
  ...(result.isError
    ? { metadata: millrace({ status: 'failed' }) }
    : result.details === undefined
      ? {}
      : { metadata: millrace({ details: plainJson(result.details) }) }),
});

const agUiContent = (content: readonly Block[]): unknown =>
  content.every(({ type }) => type === 'text')
    ? textOf({ content })
    : content.flatMap((block): readonly object[] => {
        switch (block.type) {
          case 'text':
            return [{ type: 'text', text: block.text }];
          case 'image':
          case 'audio':
          case 'file':
            return isMedia(block) ? [mediaPart(block)] : [];
          default:
            return [];
        }
      });
