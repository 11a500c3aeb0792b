import { isRecord, isSameJson, parsedJson } from './json.js';
import { isPlain, toPlainJson } from './plain-json.js';

/** Data that a vendor adds to a part of an answer and wants back with it: plain JSON, sent to that vendor only. */
export interface VendorData {
  /** The name of the vendor, such as `Anthropic`. */
  readonly vendor: string;
  readonly data: unknown;
}

/** A block that may carry data of the vendor that wrote it. */
interface WithVendorData {
  readonly vendorData?: VendorData;
}

/** The lifetime of a prompt prefix in a vendor's cache; `true` selects the shortest. */
export type CacheMark = true | '5m' | '1h';

/** A block of a user or a tool. */
interface Markable {
  /** Ends a prefix that the vendor should cache. Ignored by vendors that decide themselves. */
  readonly cache?: CacheMark;
}

/** The source of a statement in an answer. An absent field was not reported. */
export interface Citation extends WithVendorData {
  readonly url?: string;
  readonly title?: string;
  /** The cited words of the source. */
  readonly citedText?: string;
  /** The index of the document among those of the request, from 0. */
  readonly documentIndex?: number;
  /** The vendor's id of the cited file. */
  readonly fileId?: string;
  /** The place in the source. Pages count from 1, characters and blocks from 0; `end` is exclusive. */
  readonly location?: {
    readonly unit: 'page' | 'character' | 'block';
    readonly start: number;
    readonly end: number;
  };
  /** The range of its text block that it supports, in characters from 0; `end` is exclusive. Default: all of the block. */
  readonly start?: number;
  readonly end?: number;
}

export interface TextBlock extends WithVendorData, Markable {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
  /** Whether it starts a new message within the answer. A blank line separates it from the text before. */
  readonly separate?: boolean;
  /** Whether it comments on the work or is the answer, if the model distinguishes them. */
  readonly phase?: TextPhase;
}

export type TextPhase = 'commentary' | 'final_answer';

/** The reasoning of a model. A vendor that signs it needs the signature in later requests. */
export interface ThinkingBlock extends WithVendorData {
  readonly type: 'thinking';
  readonly text: string;
  readonly signature?: string;
  /** The vendor hides the text; the signature stands for it. */
  readonly redacted?: boolean;
}

/**
 * A part of an answer that only its vendor understands, such as the call of a built-in tool and its result. It is sent back
 * to that vendor unchanged; other vendors do not get it.
 */
export interface VendorBlock {
  readonly type: 'vendor';
  /** The name of the vendor, such as `Anthropic`. */
  readonly vendor: string;
  /** The vendor's type of the part, such as `web_search_tool_result`. */
  readonly kind: string;
  /** The part as the vendor sent it: plain JSON. */
  readonly data: unknown;
}

/** The bytes of an image, a recording or a file: inline as base64, at a URL, or stored at the vendor under an id. */
export type MediaSource =
  | { readonly kind: 'base64'; readonly mediaType: string; readonly data: string }
  | { readonly kind: 'url'; readonly url: string; readonly mediaType?: string }
  | { readonly kind: 'id'; readonly id: string; readonly mediaType?: string };

export interface ImageBlock extends Markable {
  readonly type: 'image';
  readonly source: MediaSource;
  /** The resolution at which the model sees it. Default: the vendor decides. Ignored by vendors without a choice. */
  readonly detail?: ImageDetail;
}

export type ImageDetail = 'auto' | 'low' | 'high' | 'original';

export interface AudioBlock extends Markable {
  readonly type: 'audio';
  readonly source: MediaSource;
}

export interface FileBlock extends Markable {
  readonly type: 'file';
  readonly source: MediaSource;
  readonly name?: string;
  /** Whether the answer should cite it. Ignored by vendors without a choice. Default: false. */
  readonly citations?: boolean;
}

/** A tool call: the model asks to run one tool. */
export interface ToolCallBlock extends WithVendorData {
  readonly type: 'tool_call';
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The model's arguments if they were not a JSON object; `input` is then empty. */
  readonly invalidInput?: string;
  /** The tool is not run; the model gets this text as the result. */
  readonly refusal?: string;
  /** Without a tool of that name, the call is suspended with this request: the program brings the result. */
  readonly suspends?: Suspends;
}

/** Why a tool call waits for the program instead of a tool. */
export interface Suspends {
  /** Plain JSON, never sent to a model. */
  readonly request: unknown;
  /** Who may bring the result. Default: only the program. */
  readonly from?: ResultSource;
}

/**
 * Who may bring the result of a suspended tool call: `client` is a client of a server, or the program; `program` is the
 * program only, and servers neither show the request nor accept a result.
 */
export type ResultSource = 'client' | 'program';

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
  /** A client of a server brought it, for a tool call that was suspended. */
  readonly from?: 'client';
  /** The tool call was suspended, and cancelled before its result came: the ids that `toolResults` takes no longer. */
  readonly cancelled?: readonly string[];
}

/** A result that arrives later. */
export interface Suspended {
  /** The request of the tool: plain JSON, never sent to a model. */
  readonly request: unknown;
  /** Who may bring the result. Stored data without it is for the program. */
  readonly from: ResultSource;
  /** The layer that continues it, such as `mcp`. Requests are data of tools and models, so no layer may recognize its own by them. */
  readonly by?: string;
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
export interface Suspension extends Omit<Suspended, 'below'> {
  readonly toolCall: ToolCallBlock;
}

/** Content of users and tools. */
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | FileBlock;

export type AssistantBlock = ContentBlock | ThinkingBlock | ToolCallBlock | VendorBlock;

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

/** Facts that a vendor reports about an answer. An absent field was not reported. */
export interface VendorFacts {
  /** The name of the vendor, such as `Anthropic`. */
  readonly name?: string;
  /** The vendor's id of the answer. */
  readonly id?: string;
  /** The model that answered, which may be more specific than the requested one. */
  readonly model?: string;
  /** The environment in which the vendor ran code. Later requests reuse it. */
  readonly container?: { readonly id: string; readonly expiresAt?: string };
  /** The part of the output tokens that went into reasoning. */
  readonly reasoningTokens?: number;
  /** Tokens written to the cache by lifetime, such as `{ '5m': 100 }`. */
  readonly cacheWrites?: Readonly<Record<string, number>>;
  /** Uses of the tools that the vendor ran, such as `{ web_search: 2 }`. */
  readonly toolUses?: Readonly<Record<string, number>>;
  /** The vendor's own reason for the end. */
  readonly stopReason?: string;
  /** The stop sequence that ended the answer. */
  readonly stopSequence?: string;
  /** Why the vendor or the model refused. */
  readonly refusal?: { readonly category?: string; readonly explanation?: string };
  /** Further details of the end, as the vendor sent them. */
  readonly stopDetails?: unknown;
  /** The service tier that handled the request. */
  readonly serviceTier?: string;
}

/** A message of the model. */
export interface AssistantMessage {
  readonly id: string;
  readonly role: 'assistant';
  readonly content: readonly AssistantBlock[];
  /** The agent that wrote it. */
  readonly name?: string;
  /** The facts that the vendor reported about it. */
  readonly vendor?: VendorFacts;
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
const blockTypes = [...contentTypes, 'thinking', 'tool_call', 'tool_result', 'vendor'];

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
  const { kind, url, id, mediaType, data } = source;
  if (kind === 'id') return typeof id === 'string' && id !== '';
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

/** Copies the fields of a block of a user or a tool, without any other field. */
export const plainBlock = (block: ContentBlock): ContentBlock => {
  const mark = isCacheMark(block.cache) ? { cache: block.cache } : {};
  switch (block.type) {
    case 'text':
      return { ...textBlock(block.text), ...mark };
    case 'file': {
      const { type, source, name, citations } = block;
      return {
        type,
        source: plainSource(source),
        ...(typeof name === 'string' && { name }),
        ...(typeof citations === 'boolean' && { citations }),
        ...mark,
      };
    }
    case 'image': {
      const { type, source, detail } = block;
      const isKnown = detail !== undefined && imageDetails.includes(detail);
      return { type, source: plainSource(source), ...(isKnown && { detail }), ...mark };
    }
    case 'audio':
      return { type: block.type, source: plainSource(block.source), ...mark };
  }
};

export const imageDetails: readonly ImageDetail[] = ['auto', 'low', 'high', 'original'];

const isCacheMark = (value: unknown): value is CacheMark =>
  value === true || value === '5m' || value === '1h';

const plainSource = (source: MediaSource): MediaSource => {
  if (source.kind === 'base64') {
    const { kind, mediaType, data } = source;
    return { kind, mediaType, data };
  }
  const typed = typeof source.mediaType === 'string' && { mediaType: source.mediaType };
  return source.kind === 'id'
    ? { kind: source.kind, id: source.id, ...typed }
    : { kind: source.kind, url: source.url, ...typed };
};

export const areContentBlocks = (value: unknown): value is readonly ContentBlock[] =>
  Array.isArray(value) && value.every(isContentBlock);

export const areBlocks = (value: unknown): value is readonly Block[] =>
  Array.isArray(value) && value.every(isWholeBlock);

/** Whether a block has the fields that are read of its type. */
const isWholeBlock = (value: unknown): boolean => {
  if (!isBlock(value)) return false;
  const { type, text, id, name, input, toolCallId, content }: Partial<Record<string, unknown>> = {
    ...value,
  };
  switch (type) {
    case 'thinking':
      return typeof text === 'string';
    case 'tool_call':
      return typeof id === 'string' && typeof name === 'string' && isRecord(input);
    case 'tool_result':
      return typeof toolCallId === 'string' && areContentBlocks(content);
    case 'vendor':
      return true;
    default:
      return isContentBlock(value);
  }
};

/** Whether a message came with a question and is no part of it: tool calls, and what other agents have said since. */
export const isBesideQuestion = (message: object): boolean =>
  'id' in message && typeof message.id === 'string' && message.id.startsWith('given/');

export const textBlock = (text: string): TextBlock => ({ type: 'text', text });

/** Returns the joined text blocks of a message, a reply or a tool result. Messages within an answer are separated by a blank line. */
export const textOf = ({ content }: { readonly content: readonly Block[] }): string =>
  content.reduce(
    (text, block) =>
      block.type === 'text' && block.text !== ''
        ? text + separatorOf(text, block) + block.text
        : text,
    '',
  );

/** Returns the text of the answer: the final answer alone, if the model marked one. */
export const answerTextOf = ({ content }: Pick<AssistantMessage, 'content'>): string => {
  const final = textOf({ content: content.filter(isFinalAnswer) });
  return final.trim() === '' ? textOf({ content }) : final;
};

const isFinalAnswer = (block: Block): boolean =>
  block.type === 'text' && block.phase === 'final_answer';

/** The white space between a text block and the text before it. */
export const separatorOf = (before: string, { separate }: Pick<TextBlock, 'separate'>): string => {
  if (separate !== true || before === '' || before.endsWith('\n\n')) return '';
  return before.endsWith('\n') ? '\n' : '\n\n';
};

/** Returns the tool calls of a message, in order. */
export const toolCallsOf = ({ content }: AssistantMessage): readonly ToolCallBlock[] =>
  content.filter((block) => block.type === 'tool_call');

/** Whether two tool calls have the same name and arguments, in any order of keys: a decision on one is one on the other. */
export const isSameInput = (
  one: Pick<ToolCallBlock, 'name' | 'input'>,
  other: Pick<ToolCallBlock, 'name' | 'input'>,
): boolean => one.name === other.name && isSameJson(one.input, other.input);

/** Freezes plain data deeply and returns it. Skips frozen data and anything else: bytes, dates, class instances. */
export const frozen = <T>(value: T): T => {
  if (Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) if (typeof part === 'object') frozen(part);
  return value;
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
  frozen(result.cancelled);
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
    return parsedJson(toPlainJson(details).json);
  } catch {
    return undefined;
  }
};
