import {
  type AssistantBlock,
  type ContentBlock,
  type InputMessage,
  isMillraceError,
  textBlock,
  type ToolCallBlock,
  type ToolResultBlock,
} from 'millrace';
import { exactJson, isRecord, toolInput } from 'millrace/values';
import { contentOfParts, fieldOf, isShortId, type PartOptions } from '../inbound.js';
import { plainJson } from '../plain-json.js';
import { assertShallow, refuse } from './refusals.js';

/** A piece of a conversation, in order. */
export type Entry =
  | { readonly from: 'system'; readonly text: string }
  | { readonly from: 'user'; readonly content: readonly ContentBlock[] }
  | { readonly from: 'model'; readonly block: AssistantBlock }
  | { readonly from: 'tool'; readonly result: ToolResultBlock };

/** Reads the `messages` of a chat completion. */
export const entriesOfChat = (messages: unknown, options?: PartOptions): readonly Entry[] =>
  listOf(messages, 'messages').flatMap((message, index): readonly Entry[] => {
    const place = `messages[${index}]`;
    const content = fieldOf(message, 'content');
    switch (fieldOf(message, 'role')) {
      case 'system':
      case 'developer':
        return [{ from: 'system', text: textIn(content, place) }];
      case 'user':
        return userEntry(content, place, options);
      case 'assistant':
        return [
          ...textEntry(textIn(content ?? '', place)),
          ...listOf(fieldOf(message, 'tool_calls') ?? [], place).map((it) =>
            callEntry(fieldOf(it, 'id'), fieldOf(it, 'function'), place),
          ),
        ];
      case 'tool':
        return [resultEntry(fieldOf(message, 'tool_call_id'), textIn(content, place), place)];
      default:
        throw refuse('This role is not supported.', `${place}.role`);
    }
  });

/** Reads the `input` of a response. */
export const entriesOfInput = (input: unknown, options?: PartOptions): readonly Entry[] =>
  typeof input === 'string'
    ? userEntry(input, 'input')
    : listOf(input, 'input').flatMap((item, index) =>
        itemEntries(item, `input[${index}]`, options),
      );

const itemEntries = (
  item: unknown,
  place: string,
  options: PartOptions | undefined,
): readonly Entry[] => {
  switch (fieldOf(item, 'type') ?? 'message') {
    case 'message':
      return entriesOfItemMessage(item, place, options);
    case 'function_call':
      return [callEntry(fieldOf(item, 'call_id'), item, place)];
    case 'function_call_output':
      return [resultEntry(fieldOf(item, 'call_id'), textIn(fieldOf(item, 'output'), place), place)];
    case 'mcp_call': {
      // A tool call of the server, copied from the output of an earlier response.
      const id = fieldOf(item, 'id');
      const [output, error] = [fieldOf(item, 'output'), fieldOf(item, 'error')];
      const text = typeof output === 'string' ? output : typeof error === 'string' ? error : '';
      return [callEntry(id, item, place), resultEntry(id, text, place, output === null)];
    }
    case 'reasoning':
    case 'mcp_approval_request':
    case 'mcp_approval_response':
      return [];
    default:
      throw refuse('Items of this type are not supported.', `${place}.type`);
  }
};

const entriesOfItemMessage = (
  item: unknown,
  place: string,
  options: PartOptions | undefined,
): readonly Entry[] => {
  const content = fieldOf(item, 'content');
  switch (fieldOf(item, 'role')) {
    case 'system':
    case 'developer':
      return [{ from: 'system', text: textIn(content, place) }];
    case 'user':
      return userEntry(content, place, options);
    case 'assistant':
      return textEntry(textIn(content, place));
    default:
      throw refuse('This role is not supported.', `${place}.role`);
  }
};

const maxLength = 10_000;

const listOf = (value: unknown, param: string): readonly unknown[] => {
  if (!Array.isArray(value)) throw refuse(`'${param}' must be a list.`, param);
  if (value.length > maxLength) throw refuse(`'${param}' is too long.`, param);
  return value;
};

const userEntry = (content: unknown, place: string, options?: PartOptions): readonly Entry[] => {
  const blocks = blocksOf(content, place, options);
  return blocks.length === 0 ? [] : [{ from: 'user', content: blocks }];
};

const textEntry = (text: string): readonly Entry[] =>
  text === '' ? [] : [{ from: 'model', block: textBlock(text) }];

const callEntry = (id: unknown, call: unknown, place: string): Entry => {
  const [name, text] = [fieldOf(call, 'name'), fieldOf(call, 'arguments')];
  if (!isShortId(id) || !isShortId(name) || typeof text !== 'string') {
    throw refuse('A tool call needs an id, a name and arguments.', place);
  }
  return { from: 'model', block: toolCallOf(id, name, text, place) };
};

const toolCallOf = (id: string, name: string, text: string, place: string): ToolCallBlock => {
  const given: unknown = exactJson(text === '' ? '{}' : text);
  assertShallow(given, place);
  // Drop keys that could reach a prototype: conversations do not keep them.
  const input = 'input' in toolInput(given) ? plainJson(given) : undefined;
  return isRecord(input)
    ? { type: 'tool_call', id, name, input }
    : { type: 'tool_call', id, name, input: {}, invalidInput: text };
};

const resultEntry = (id: unknown, text: string, place: string, isError = false): Entry => {
  if (!isShortId(id)) throw refuse('A result needs the id of its tool call.', place);
  const content = [textBlock(text)];
  const result = { type: 'tool_result', toolCallId: id, content, isError, from: 'client' } as const;
  return { from: 'tool', result };
};

const texts = ['text', 'input_text', 'output_text'];

/** The text of content that may only have text. */
const textIn = (content: unknown, place: string): string => {
  if (typeof content === 'string') return content;
  return listOf(content, `${place}.content`)
    .map((part) => {
      const text =
        fieldOf(part, 'type') === 'refusal' ? fieldOf(part, 'refusal') : fieldOf(part, 'text');
      if (typeof text === 'string') return text;
      throw refuse('This content may only have text.', `${place}.content`);
    })
    .join('');
};

const blocksOf = (
  content: unknown,
  place: string,
  options: PartOptions | undefined,
): readonly ContentBlock[] => {
  if (typeof content === 'string') return content === '' ? [] : [textBlock(content)];
  const parts = listOf(content, `${place}.content`).map(partOf);
  if (parts.every((part) => fieldOf(part, 'text') === '')) return [];
  try {
    const read = contentOfParts(parts, options);
    return typeof read === 'string' ? [textBlock(read)] : [read].flat().filter(isBlock);
  } catch (error) {
    if (!isMillraceError(error)) throw error;
    throw refuse(
      'Content may have text, and images, recordings and files as base64 data.',
      `${place}.content`,
      'invalid_value',
    );
  }
};

const isBlock = (block: unknown): block is ContentBlock => isRecord(block) && 'type' in block;

/** A part of content as the decoders of the other protocols read it. */
const partOf = (part: unknown): unknown => {
  const type = fieldOf(part, 'type');
  if (texts.some((it) => it === type)) return { type: 'text', text: fieldOf(part, 'text') };
  switch (type) {
    case 'image_url':
      return { url: fieldOf(fieldOf(part, 'image_url'), 'url') };
    case 'input_image':
      return { url: fieldOf(part, 'image_url') };
    case 'input_audio': {
      const audio = fieldOf(part, 'input_audio');
      const format = fieldOf(audio, 'format');
      const mimeType = `audio/${format === 'mp3' ? 'mpeg' : String(format)}`;
      return { source: { type: 'data', value: fieldOf(audio, 'data'), mimeType } };
    }
    case 'file':
      return fileOf(fieldOf(part, 'file'));
    case 'input_file':
      return fileOf(part);
    default:
      return part;
  }
};

const fileOf = (file: unknown): unknown => {
  const data = fieldOf(file, 'file_data');
  const isUrl = typeof data === 'string' && data.startsWith('data:');
  const url = isUrl ? data : `data:application/pdf;base64,${String(data)}`;
  return { url, filename: fieldOf(file, 'filename') };
};

/** A conversation in the terms of a call. */
export interface Conversation {
  readonly instructions: string | undefined;
  /** All messages except those of the input. */
  readonly history: readonly InputMessage[];
  /** The last messages of the user, and before them the results of the last tool calls. */
  readonly input: readonly InputMessage[];
  /** All messages. */
  readonly messages: readonly InputMessage[];
}

/** If the request `continues` a conversation of the server, leading results belong to that one. */
export const conversationOf = (entries: readonly Entry[], continues: boolean): Conversation => {
  const system = entries.flatMap((entry) => (entry.from === 'system' ? [entry.text] : []));
  const messages = messagesIn(entries);
  const [first] = messages;
  const isLate = continues && first?.role === 'tool';
  assertPaired(isLate ? messages.slice(1) : messages);
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const input = messages.slice(last + 1);
  if (input.length === 0) throw refuse('The last message must be from the user or a tool.');
  const [results] = input;
  const asked = messages.slice(0, last + 1);
  return {
    instructions: system.length === 0 ? undefined : system.join('\n\n'),
    messages,
    input,
    history: results?.role === 'tool' && !isLate ? [...asked, awaited(results)] : asked,
  };
};

/**
 * Groups text and tool calls up to the next result, and results up to the next text. Takes one pass, since a hostile
 * conversation may be long.
 */
const messagesIn = (entries: readonly Entry[]): readonly InputMessage[] => {
  const messages: (InputMessage & { readonly content: unknown[] })[] = [];
  for (const entry of entries) {
    const last = messages.at(-1);
    if (entry.from === 'user') messages.push({ role: 'user', content: [...entry.content] });
    else if (entry.from === 'model') {
      if (last?.role === 'assistant') last.content.push(entry.block);
      else messages.push({ role: 'assistant', content: [entry.block] });
    } else if (entry.from === 'tool') {
      if (last?.role === 'tool') last.content.push(entry.result);
      else messages.push({ role: 'tool', content: [entry.result] });
    }
  }
  return messages;
};

/** Each tool call has one result, in the next message. */
const assertPaired = (messages: readonly InputMessage[]): void => {
  messages.forEach((message, index) => {
    if (message.role === 'user') return;
    const isResult = message.role === 'tool';
    const asked = idsIn(isResult ? messages[index - 1] : message, 'tool_call');
    const answered = idsIn(isResult ? message : messages[index + 1], 'tool_result');
    assertAnswered(asked, answered);
  });
};

/** Each of these tool calls has a result, and there are no others. */
export const assertAnswered = (asked: ReadonlySet<string>, answered: ReadonlySet<string>): void => {
  const odd =
    [...asked].find((id) => !answered.has(id)) ?? [...answered].find((id) => !asked.has(id));
  if (odd === undefined) return;
  throw refuse(`The tool call '${odd}' needs a message that makes it, and one result after it.`);
};

export const idsIn = (
  message: InputMessage | undefined,
  type: 'tool_call' | 'tool_result',
): ReadonlySet<string> => {
  const ids = (message?.content ?? []).flatMap((block) =>
    block.type !== type ? [] : [block.type === 'tool_call' ? block.id : block.toolCallId],
  );
  const distinct = new Set(ids);
  if (distinct.size === ids.length) return distinct;
  throw refuse('Two tool calls of a message, or two results, have the same id.');
};
/** Marks the last tool calls as suspended: the input brings their results. */
const awaited = (results: Extract<InputMessage, { readonly role: 'tool' }>): InputMessage => ({
  role: 'tool',
  content: results.content.map(({ toolCallId }) => ({
    type: 'tool_result',
    toolCallId,
    content: [textBlock('The client runs it.')],
    isError: false,
    suspended: { request: null, from: 'client' },
  })),
});
