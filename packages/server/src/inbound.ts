import {
  type ContentBlock,
  type Input,
  type MediaSource,
  type Message,
  MillraceError,
  type Suspension,
  suspensionsIn,
  textOf,
  toolOutput,
  toolResults,
} from 'millrace';
import { isUncertain } from 'millrace/journal';
import { isFunction, isRecord, isSameJson, type Rule } from 'millrace/values';

/** The error for a malformed request. Its message, which the client gets, must not quote the request. */
export const badRequest = (problem: string): MillraceError => {
  const message = `The request is malformed: ${problem}.`;
  return new MillraceError('invalidRequest', message, { userMessage: message, status: 400 });
};

/** Reads an own property; `undefined` for inherited ones. */
export const fieldOf = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;

export const requireObject = (body: unknown): void => {
  if (!isRecord(body)) throw badRequest('it is not a JSON object');
};

/** Validates an untrusted id: short, and without characters that are special in paths or log lines. */
export const idOf = (value: unknown, name: string): string => {
  if (typeof value === 'string' && /^[\w-][\w.:@-]{0,127}$/.test(value)) return value;
  throw badRequest(`'${name}' must be an id of up to 128 letters, digits and . : @ _ -`);
};

/** Sufficient for an id that is only returned to the client or compared with known ids. */
export const isShortId = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= 512;

/** Refuses a message whose place is unknown: if it were omitted, the model would read a different conversation than the client shows. */
export const badMessageId = (): MillraceError =>
  badRequest("'messages[].id' must be a string of up to 512 characters");

export const messagesOf = (body: unknown): readonly unknown[] => {
  const messages = fieldOf(body, 'messages');
  if (Array.isArray(messages)) return messages;
  throw badRequest("'messages' must be a list");
};

/** A part of a user message that is neither text nor a file as base64 data: for example a data part of the AI SDK. */
export interface ForeignPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** How parts of user messages are read that are neither text nor files as base64 data. */
export interface PartOptions {
  /** Returns the content that the model gets for a part, such as text; `undefined` leaves it out. */
  readonly convertPart?: (
    part: ForeignPart,
  ) => string | ContentBlock | readonly ContentBlock[] | undefined;
  /** Called with a warning for each part that is left out, because nothing converts it. Default: the request is refused. */
  readonly onWarning?: (warning: string) => void;
}

export const partRules: Readonly<Record<keyof PartOptions, Rule>> = {
  convertPart: isFunction,
  onWarning: isFunction,
};

/** The content of a user message with parts: its text, or its blocks if it has files. */
export const contentOfParts = (
  parts: unknown,
  options: PartOptions = {},
): string | readonly ContentBlock[] => {
  const blocks = listOfParts(parts).flatMap((part, at) => blocksOf(part, at, options));
  if (blocks.some(({ type }) => type !== 'text')) return blocks;
  return notBlank(textOf({ content: blocks }));
};

/** The text of a message with parts. Throws on other parts than text, rather than ignore them silently. */
export const textOfParts = (parts: unknown): string => {
  const blocks = listOfParts(parts).flatMap((part, at) => blocksOf(part, at, {}));
  if (blocks.every(({ type }) => type === 'text')) return textOf({ content: blocks });
  throw badRequest('this message may only have text parts');
};

const listOfParts = (parts: unknown): readonly unknown[] => {
  if (Array.isArray(parts)) return parts;
  throw badRequest('the last message must have a list of parts');
};

/** Reads text, a file of the AI SDK, or an image, audio or a document of AG-UI. `convertPart` converts all others. */
const blocksOf = (
  part: unknown,
  at: number,
  { convertPart, onWarning }: PartOptions,
): readonly ContentBlock[] => {
  const text = fieldOf(part, 'text');
  if (fieldOf(part, 'type') === 'text' && typeof text === 'string') return [{ type: 'text', text }];
  const file = fileBlockOf(part);
  if (file !== undefined) return [file];
  if (convertPart !== undefined && isForeign(part)) return convertedBlocks(convertPart(part));
  const type = fieldOf(part, 'type');
  const place = `part ${at + 1} of the last message`;
  if (type === 'text') throw badRequest(`the 'text' of ${place} is not a string`);
  if (!isForeign(part)) throw badRequest(`${place} has no 'type'`);
  if (fileTypes.includes(part.type)) {
    throw badRequest(`${place}, a '${part.type}', may only have base64 data`);
  }
  // Accept only plain media types.
  const name = /^[\w.:/-]{1,64}$/u.test(part.type) ? ` '${part.type}'` : '';
  if (onWarning === undefined)
    throw badRequest(`${place} has the type${name}, which nothing reads`);
  onWarning(`The part${name} of a message was left out. Convert it with 'convertPart'.`);
  return [];
};

const fileTypes: readonly string[] = ['file', 'image', 'audio', 'video', 'document', 'binary'];

const isForeign = (part: unknown): part is ForeignPart => typeof fieldOf(part, 'type') === 'string';

const convertedBlocks = (
  given: ReturnType<NonNullable<PartOptions['convertPart']>>,
): readonly ContentBlock[] => {
  if (given === undefined) return [];
  if (typeof given === 'string') return [{ type: 'text', text: given, separate: true }];
  return [given].flat();
};

const fileBlockOf = (part: unknown): ContentBlock | undefined => {
  const name = fieldOf(part, 'filename');
  const source = fieldOf(part, 'source');
  const file = isRecord(source) ? sourceOf(source) : sourceAt(fieldOf(part, 'url'));
  if (file === undefined) return undefined;
  const media = /^(?:image|audio)(?=\/)/u.exec(file.mediaType ?? '')?.[0];
  if (media === 'image' || media === 'audio') return { type: media, source: file };
  return {
    type: 'file',
    source: file,
    ...(typeof name === 'string' && name.length <= 255 ? { name } : {}),
  };
};

/** The bytes of a data URL. Other URLs are refused: the server of a model may fetch them from its own network. */
const sourceAt = (url: unknown): MediaSource | undefined => {
  if (typeof url !== 'string' || !url.startsWith('data:')) return undefined;
  const comma = url.indexOf(',');
  const [mimeType, ...parameters] = url.slice('data:'.length, Math.max(0, comma)).split(';');
  return parameters.at(-1) === 'base64'
    ? sourceOf({ type: 'data', value: url.slice(comma + 1), mimeType })
    : undefined;
};

const sourceOf = (source: unknown): MediaSource | undefined => {
  const data = fieldOf(source, 'value');
  const mediaType = fieldOf(source, 'mimeType');
  const isData = fieldOf(source, 'type') === 'data' && typeof data === 'string';
  return isData &&
    typeof mediaType === 'string' &&
    isMediaType.test(mediaType) &&
    isBase64.test(data)
    ? { kind: 'base64', mediaType, data }
    : undefined;
};

const isMediaType = /^[\w.+-]{1,127}\/[\w.+-]{1,127}$/u;
const isBase64 = /^[\w+/-]+={0,2}$/u;

export const notBlank = (text: unknown): string => {
  if (typeof text === 'string' && text.trim() !== '') return text;
  throw badRequest('the last message has no text');
};

/** The result of a suspended tool call from a client. The id is the one within the agent call. */
export type ClientResult = readonly [localId: string, output: unknown];

/** The output of a tool that failed in the client. */
export const clientToolError = (...messages: readonly unknown[]): unknown => {
  const text = messages.filter((it) => typeof it === 'string').join('\n');
  return toolOutput({ content: text.trim() || 'The tool failed.', isError: true });
};

/** Whether a client may see what a tool call waits for, and bring its result. */
export const isForClient = ({ from }: Pick<Suspension, 'from'>): boolean => from === 'client';

/**
 * Throws a 409 if a client brings a result that only the application may bring, or if the conversation waits only for such
 * results. An input that `settles` contains a message, which also gives a result to tool calls that an ended process left
 * open.
 */
export const assertForClient = (
  messages: readonly Message[],
  brought: ReadonlySet<string>,
  settles: boolean,
): void => {
  const waiting = suspensionsIn(messages);
  const isHeld = (it: Suspension): boolean => !isForClient(it);
  if (waiting.some((it) => isHeld(it) && brought.has(it.toolCall.id))) {
    throw heldBack('This tool call does not wait for you.');
  }
  const isSettled = settles && waiting.every(isUncertain);
  if (waiting.length > 0 && waiting.every(isHeld) && !isSettled) {
    throw heldBack('The conversation waits for a decision. Try again later.');
  }
};

/** The error for a result that a client may not bring, or not now. */
export const heldBack = (userMessage: string): MillraceError =>
  new MillraceError('invalidResume', userMessage, { status: 409, userMessage });

/** The ids of the tool calls that an input brings results for. */
export const resultsIn = (input: Input): ReadonlySet<string> => {
  const parts: readonly unknown[] = Array.isArray(input) ? input : [input];
  const blocks = parts.flatMap((part) => {
    const content = fieldOf(part, 'role') === 'tool' ? fieldOf(part, 'content') : undefined;
    return Array.isArray(content) ? content.map((block) => fieldOf(block, 'toolCallId')) : [];
  });
  return new Set(blocks.filter((id) => typeof id === 'string'));
};

/** The input that resumes a call with results, and their ids for the stream. */
export const resumeInput = (
  results: readonly ClientResult[],
): { readonly input: Input; readonly clientResults: readonly string[] } => {
  if (results.length === 0) {
    throw badRequest(
      'the last message must be a user message or contain the result of a suspended tool',
    );
  }
  const brought = oneForEach(results);
  return {
    input: toolResults(Object.fromEntries(brought), { from: 'client' }),
    clientResults: [...brought.keys()],
  };
};

/** The answers of one request by what they answer. Throws if two different ones answer the same: the client cannot have meant both. */
export const oneForEach = <T>(
  answers: readonly (readonly [id: string, answer: T])[],
): ReadonlyMap<string, T> => {
  const byId = new Map<string, T>();
  for (const [id, answer] of answers) {
    if (byId.has(id) && !isSameJson(byId.get(id), answer)) {
      throw badRequest(
        'it answers the same question twice, in different ways; send one answer to each question',
      );
    }
    byId.set(id, answer);
  }
  return byId;
};

/** Whether the content type of a request is JSON. Forms of other sites cannot send it. */
export const isJson = ({ headers }: Request): boolean =>
  /^application\/json[ \t]*(;|$)/i.test(headers.get('content-type') ?? '');

/** Reads a request body as UTF-8; `undefined` if it exceeds `maxBytes`. Rejects if it is interrupted or not UTF-8. */
export const readBody = async (
  { body, headers }: Request,
  maxBytes: number,
): Promise<string | undefined> => {
  if (Number(headers.get('content-length')) > maxBytes) {
    await body?.cancel();
    return undefined;
  }
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const pieces: string[] = [];
  let length = 0;
  if (body === null) return '';
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return [...pieces, decoder.decode()].join('');
    length += value.byteLength;
    if (length > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    pieces.push(decoder.decode(value, { stream: true }));
  }
};
