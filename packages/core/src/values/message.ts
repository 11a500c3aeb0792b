import { isRecord, parsedJson } from './json.js';

/** Plain text. */
export interface TextBlock {
  readonly type: 'text';
  readonly text: string;
}

/** What a model thought before it spoke. A vendor that signs its thinking wants the signature back. */
export interface ThinkingBlock {
  readonly type: 'thinking';
  readonly text: string;
  readonly signature?: string;
  /** The vendor hid the text; only the signature says what it was. */
  readonly redacted?: boolean;
}

/** Where the bytes of an image, a recording or a file are: inline as base64, or at an address. */
export type MediaSource =
  | { readonly kind: 'base64'; readonly mediaType: string; readonly data: string }
  | { readonly kind: 'url'; readonly url: string; readonly mediaType?: string };

/** A picture. */
export interface ImageBlock {
  readonly type: 'image';
  readonly source: MediaSource;
}

/** A recording. */
export interface AudioBlock {
  readonly type: 'audio';
  readonly source: MediaSource;
}

/** A document. */
export interface FileBlock {
  readonly type: 'file';
  readonly source: MediaSource;
  readonly name?: string;
}

/** The model asks for one run of one tool. */
export interface ToolUseBlock {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** What the model wrote where its arguments were not a JSON object; `input` is then empty. */
  readonly invalidInput?: string;
  /** It is not run, and this is what the model is told instead. */
  readonly refusal?: string;
}

/** What one run of a tool gave: the answer to the `tool_use` with the id `toolUseId`. */
export interface ToolResultBlock {
  readonly type: 'tool_result';
  readonly toolUseId: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** What the model is told before the content: it is no part of what the tool gave. */
  readonly note?: string;
  /** For the user interface only; never sent to a model, and not frozen. */
  readonly details?: unknown;
  /** The result is still to come. */
  readonly suspended?: Suspended;
}

/** Why a result is still to come. */
export interface Suspended {
  /** What the tool has asked for: plain JSON, never sent to a model. */
  readonly request: unknown;
}

/** A tool use whose result is still to come. */
export interface Suspension {
  readonly toolUse: ToolUseBlock;
  /** What the tool has asked for. */
  readonly request: unknown;
}

/** What people and tools say. */
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | FileBlock;

/** What a model says. */
export type AssistantBlock = ContentBlock | ThinkingBlock | ToolUseBlock;

/** Any part of a message. */
export type Block = AssistantBlock | ToolResultBlock;

/** What a person, or another agent, said. */
export interface UserMessage {
  readonly id: string;
  readonly role: 'user';
  readonly content: readonly ContentBlock[];
  /** Who said it, where there is more than one. */
  readonly name?: string;
}

/** Why the provider ended its answer: `stop` also where it asked for tools. */
export type Finish = 'stop' | 'length' | 'refusal' | 'filtered';

/** What the model said. */
export interface AssistantMessage {
  readonly id: string;
  readonly role: 'assistant';
  readonly content: readonly AssistantBlock[];
  /** The agent that said it. */
  readonly name?: string;
}

/** The results of all tools that the assistant message before it asked for, in the order it asked. */
export interface ToolMessage {
  readonly id: string;
  readonly role: 'tool';
  readonly content: readonly ToolResultBlock[];
}

/** One step of a conversation: immutable and frozen. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

const contentTypes: readonly string[] = ['text', 'image', 'audio', 'file'];

const isBlock = (value: unknown): value is { readonly type: string } =>
  isRecord(value) && typeof value['type'] === 'string';

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

/** A path or a data URL shows itself at its beginning; the rest is for the vendor to read. */
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
  value.every(
    (block) => isContentBlock(block) || (isBlock(block) && !contentTypes.includes(block.type)),
  );

/** Makes a block of text. */
export const textBlock = (text: string): TextBlock => ({ type: 'text', text });

/** Joins the text blocks of a message, a reply or a tool result; other blocks have no text. */
export const textOf = ({ content }: { readonly content: readonly Block[] }): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

/** Lists the tools that a message asks for, in its order. */
export const toolUsesOf = ({ content }: AssistantMessage): readonly ToolUseBlock[] =>
  content.filter((block) => block.type === 'tool_use');

/** Freezes plain data deeply and returns it. Skips what is frozen already and whatever is more than data: bytes, dates, instances of classes. */
export const frozen = <T>(value: T): T => {
  if (!isPlain(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
};

export const isPlain = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** Freezes a message through and through, but for the `details` of results: those are the tool's own. */
export const freezeMessage = (message: Message): Message =>
  message.role === 'tool' && !Object.isFrozen(message)
    ? Object.freeze({ ...message, content: Object.freeze(message.content.map(freezeResult)) })
    : frozen(message);

/** Freezes a tool's result, but for its `details`. */
export const freezeResult = (result: ToolResultBlock): ToolResultBlock => {
  frozen(result.content);
  frozen(result.suspended);
  return Object.freeze(result);
};

/** Copies plain data through and through, so that whoever gets it may do with it what he wants. What is more than data is shared: bytes, dates, instances of classes. */
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

/** What a tool gives for user interfaces may be anything: what JSON cannot hold of it is left out where a result is written down. */
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
