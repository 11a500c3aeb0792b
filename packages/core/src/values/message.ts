import { isObject, isRecord, parsedJson } from './json.js';

export interface TextBlock {
  readonly type: 'text';
  readonly text: string;
}

/** The reasoning of a model. A vendor that signs it needs the signature in later requests. */
export interface ThinkingBlock {
  readonly type: 'thinking';
  readonly text: string;
  readonly signature?: string;
  /** The vendor hides the text; the signature stands for it. */
  readonly redacted?: boolean;
}

/** The bytes of an image, a recording or a file: inline as base64, or at a URL. */
export type MediaSource =
  | { readonly kind: 'base64'; readonly mediaType: string; readonly data: string }
  | { readonly kind: 'url'; readonly url: string; readonly mediaType?: string };

export interface ImageBlock {
  readonly type: 'image';
  readonly source: MediaSource;
}

export interface AudioBlock {
  readonly type: 'audio';
  readonly source: MediaSource;
}

export interface FileBlock {
  readonly type: 'file';
  readonly source: MediaSource;
  readonly name?: string;
}

/** A tool call: the model asks to run one tool. */
export interface ToolCallBlock {
  readonly type: 'tool_call';
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The model's arguments if they were not a JSON object; `input` is then empty. */
  readonly invalidInput?: string;
  /** The tool is not run; the model gets this text as the result. */
  readonly refusal?: string;
}

/** The result of the tool call with the id `toolCallId`. */
export interface ToolResultBlock {
  readonly type: 'tool_result';
  readonly toolCallId: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** A note that the model reads before the content. It is not part of the tool's output. */
  readonly note?: string;
  /** Data for the user interface. Never sent to a model, and not frozen. */
  readonly details?: unknown;
  /** The result arrives later. */
  readonly suspended?: Suspended;
}

/** A result that arrives later. */
export interface Suspended {
  /** The request of the tool: plain JSON, never sent to a model. */
  readonly request: unknown;
  /** The calls of the tool that wait. */
  readonly below?: WaitingBelow;
}

/** Calls below a tool call, at any depth, that wait for results. Plain JSON. */
export interface WaitingBelow {
  /** The id of the root call. */
  readonly rootId: string;
  readonly waiting: readonly Suspension[];
  /** The steps of these calls so far, by their positions. */
  readonly steps: Readonly<Record<string, unknown>>;
}

/** A tool call that waits for its result. The `id` of one in a sub-agent starts with its place: `call_1/call_2`. */
export interface Suspension {
  readonly toolCall: ToolCallBlock;
  readonly request: unknown;
}

/** Content of users and tools. */
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | FileBlock;

export type AssistantBlock = ContentBlock | ThinkingBlock | ToolCallBlock;

export type Block = AssistantBlock | ToolResultBlock;

/** A message of a user, or of another agent. */
export interface UserMessage {
  readonly id: string;
  readonly role: 'user';
  readonly content: readonly ContentBlock[];
  /** The author, if there is more than one. */
  readonly name?: string;
}

/** Why the provider ended its answer; `stop` includes tool calls. */
export type Finish = 'stop' | 'length' | 'refusal' | 'filtered';

/** A message of the model. */
export interface AssistantMessage {
  readonly id: string;
  readonly role: 'assistant';
  readonly content: readonly AssistantBlock[];
  /** The agent that wrote it. */
  readonly name?: string;
}

/** The results of all tool calls of the preceding assistant message, in their order. */
export interface ToolMessage {
  readonly id: string;
  readonly role: 'tool';
  readonly content: readonly ToolResultBlock[];
}

/** A message of a conversation: immutable and frozen. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

const contentTypes: readonly unknown[] = ['text', 'image', 'audio', 'file'];
const blockTypes = [...contentTypes, 'thinking', 'tool_call', 'tool_result'];

export const isBlock = (value: unknown): value is { readonly type: string } =>
  isRecord(value) && blockTypes.includes(value['type']);

export const isContentBlock = (value: unknown): value is ContentBlock =>
  isBlock(value) &&
  contentTypes.includes(value.type) &&
  (value.type === 'text'
    ? 'text' in value && typeof value.text === 'string'
    : 'source' in value && isMediaSource(value.source));

const isMediaSource = (source: unknown): source is MediaSource => {
  if (!isRecord(source)) return false;
  const { kind, url, mediaType, data } = source;
  return kind === 'url'
    ? typeof url === 'string' && URL.canParse(url)
    : kind === 'base64' &&
        typeof mediaType === 'string' &&
        mediaType.includes('/') &&
        typeof data === 'string' &&
        looksLikeBase64(data);
};

/** Detects paths and data URLs by their first characters; the vendor checks the rest. */
const looksLikeBase64 = (data: string): boolean =>
  data !== '' && /^[A-Za-z0-9+/_\-\s]*=*\s*$/.test(data.slice(0, 256));

export const plainBlock = (block: ContentBlock): ContentBlock => {
  switch (block.type) {
    case 'text':
      return textBlock(block.text);
    case 'file': {
      const { type, source, name } = block;
      return { type, source: plainSource(source), ...(typeof name === 'string' && { name }) };
    }
    default:
      return { type: block.type, source: plainSource(block.source) };
  }
};

const plainSource = (source: MediaSource): MediaSource => {
  if (source.kind === 'base64') {
    const { kind, mediaType, data } = source;
    return { kind, mediaType, data };
  }
  const { kind, url, mediaType } = source;
  return { kind, url, ...(typeof mediaType === 'string' && { mediaType }) };
};

export const areContentBlocks = (value: unknown): value is readonly ContentBlock[] =>
  Array.isArray(value) && value.every(isContentBlock);

export const areBlocks = (value: unknown): value is readonly Block[] =>
  Array.isArray(value) &&
  value.every((it) => isBlock(it) && (isContentBlock(it) || !contentTypes.includes(it.type)));

export const textBlock = (text: string): TextBlock => ({ type: 'text', text });

/** Returns the joined text blocks of a message, a reply or a tool result. */
export const textOf = ({ content }: { readonly content: readonly Block[] }): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

/** Returns the tool calls of a message, in order. */
export const toolCallsOf = ({ content }: AssistantMessage): readonly ToolCallBlock[] =>
  content.filter((block) => block.type === 'tool_call');

/** Freezes plain data deeply and returns it. Skips frozen data and anything else: bytes, dates, class instances. */
export const frozen = <T>(value: T): T => {
  if (!isObject(value) || Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
};

export const isPlain = (value: unknown): value is object => {
  if (!isObject(value)) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** Freezes a message deeply, except the `details` of results, which belong to the tool. */
export const freezeMessage = (message: Message): Message =>
  message.role === 'tool' && !Object.isFrozen(message)
    ? Object.freeze({ ...message, content: Object.freeze(message.content.map(freezeResult)) })
    : frozen(message);

/** Freezes a tool result, except its `details`. */
export const freezeResult = (result: ToolResultBlock): ToolResultBlock => {
  frozen(result.content);
  frozen(result.suspended);
  return Object.freeze(result);
};

/** Copies plain data deeply, so the receiver may change it. Bytes, dates and class instances are shared. */
export const copied = (value: unknown, copies = new Map<object, unknown>()): unknown => {
  if (!isPlain(value)) return value;
  const before = copies.get(value);
  if (before !== undefined) return before;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    copies.set(value, list);
    for (const item of value) list.push(copied(item, copies));
    return list;
  }
  const record: Record<string, unknown> = {};
  copies.set(value, record);
  for (const [key, item] of Object.entries(value)) {
    // An assignment to `__proto__` would change the prototype.
    Object.defineProperty(record, key, {
      value: copied(item, copies),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return record;
};

/** Converts `details`, which may be any value, to plain JSON for storage; drops what JSON cannot express. */
export const withPlainDetails = ({ details, ...result }: ToolResultBlock): ToolResultBlock => {
  const plain = details === undefined ? undefined : plainOf(details);
  return plain === undefined ? result : { ...result, details: plain };
};

export const withPlainResults = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool'
      ? { ...message, content: message.content.map(withPlainDetails) }
      : message,
  );

const plainOf = (details: unknown): unknown => {
  try {
    const text: unknown = JSON.stringify(details);
    return typeof text === 'string' ? parsedJson(text) : undefined;
  } catch {
    return undefined;
  }
};
