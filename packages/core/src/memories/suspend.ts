import { notAwaited } from '../call/answer.js';
import { MillraceError } from '../values/errors.js';
import { parsedJson } from '../values/json.js';
import type { InputMessage } from '../seams/input.js';
import {
  type Message,
  type Suspension,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  toolCallsOf,
} from '../values/message.js';
import { toolOutput, type ToolOutput, toOutput } from '../values/tool-output.js';

/**
 * The output of a tool whose result arrives later: the call ends with reason `suspended`, and `toolResults` continues
 * the session, also in another process. The request is plain JSON, hidden from the model.
 */
export const suspend = (request: unknown = null): ToolOutput =>
  toolOutput({
    content: 'Suspended: the result comes later.',
    suspended: { request: parsedJson(JSON.stringify(request)) },
  });

/** The input that continues a suspended session: a return value for each suspended tool call, by its id. */
export const toolResults = (results: Readonly<Record<string, unknown>>): InputMessage => {
  if (Object.keys(results).length === 0)
    throw refused('toolResults() needs a result: toolResults({ [id]: result }).');
  return {
    role: 'tool',
    content: Object.entries(results).map(([toolCallId, value]): ToolResultBlock => {
      if (value instanceof Promise) {
        throw refused(`The result for '${toolCallId}' is a Promise: await it first.`);
      }
      const { content, isError, details } = toOutput(value);
      const result = { type: 'tool_result', toolCallId, content, isError } as const;
      return details === undefined ? result : { ...result, details };
    }),
  };
};

export const suspensionsIn = (messages: readonly Message[]): readonly Suspension[] => {
  const settled = withResults(messages);
  const uses = usesIn(settled);
  return settled.flatMap(results).flatMap(({ toolCallId, suspended }) => {
    const toolCall = uses.get(toolCallId);
    return suspended === undefined || toolCall === undefined
      ? []
      : [{ toolCall, request: suspended.request }];
  });
};

export const usesIn = (messages: readonly Message[]): ReadonlyMap<string, ToolCallBlock> =>
  new Map(messages.flatMap(toolCalls).map((use) => [use.id, use]));

/** Moves each late result to its suspended tool call: the nearest earlier one with its id. */
export const withResults = (messages: readonly Message[]): readonly Message[] => {
  const waiting = new Map<string, ToolResultBlock>();
  const settled = new Map<ToolResultBlock, ToolResultBlock>();
  const moved = new Set<Message>();
  messages.forEach((message, index) => {
    if (isLate(message, index, messages) && isAwaited(message, waiting)) {
      moved.add(message);
      for (const result of message.content) {
        const place = waiting.get(result.toolCallId);
        if (place !== undefined) settled.set(place, result);
        waiting.delete(result.toolCallId);
      }
    } else {
      const open = results(message).filter(({ suspended }) => suspended !== undefined);
      open.forEach((result) => waiting.set(result.toolCallId, result));
    }
  });
  if (moved.size === 0) return messages;
  return messages
    .filter((message) => !moved.has(message))
    .map((message) =>
      message.role === 'tool'
        ? { ...message, content: message.content.map((block) => settled.get(block) ?? block) }
        : message,
    );
};

const isAwaited = ({ content }: ToolMessage, waiting: ReadonlyMap<string, unknown>): boolean =>
  content.every(({ toolCallId }) => waiting.has(toolCallId));

const isLate = (
  message: Message,
  index: number,
  messages: readonly Message[],
): message is ToolMessage => {
  const before = messages[index - 1];
  const asked = before === undefined ? [] : toolCalls(before).map(({ id }) => id);
  return message.role === 'tool' && !message.content.some((it) => asked.includes(it.toolCallId));
};

/** Throws if results are unexpected, repeated or missing. */
export const assertResumes = (
  history: readonly Message[],
  brought: ToolMessage | undefined,
): void => {
  const waiting = suspensionsIn(history).map(({ toolCall }) => toolCall.id);
  const given = (brought?.content ?? []).map(({ toolCallId }) => toolCallId);
  const unknown = given.find((id) => !waiting.includes(id));
  if (unknown !== undefined) throw notAwaited(unknown, waiting);
  const twice = given.find((id, index) => given.indexOf(id) !== index);
  if (twice !== undefined) throw refused(`There are two results for the tool call '${twice}'.`);
  const missing = waiting.filter((id) => !given.includes(id));
  if (missing.length > 0) {
    throw refused(
      `The session is suspended: it waits for the results of ${missing.join(', ')}. Supply them: session.call(toolResults({ '${missing[0] ?? ''}': result })).`,
    );
  }
};

const refused = (message: string): MillraceError => new MillraceError('invalidResume', message);

const toolCalls = (message: Message): readonly ToolCallBlock[] =>
  message.role === 'assistant' ? toolCallsOf(message) : [];

const results = (message: Message): readonly ToolResultBlock[] =>
  message.role === 'tool' ? message.content : [];
