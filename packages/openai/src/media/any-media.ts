import {
  type AssistantBlock,
  type AssistantMessage,
  type AudioBlock,
  type ContentBlock,
  type ImageBlock,
  isMillraceError,
  type Message,
  MillraceError,
  type ModelChunk,
  textBlock,
  textOf,
  type ToolMessage,
  type UserMessage,
} from 'millrace';
import { isRecord } from 'millrace/values';
import {
  at,
  capExceeded,
  capsOf,
  countAt,
  decodeSignature,
  listAt,
  memoizeByObject,
  textAt,
  textChunks,
} from '@millrace/wire';
import { chatPart } from '../chat-messages.js';
import { checkMedia, inlined, type MediaBlock } from '../media.js';
import { responsesPart } from '../responses-input.js';
import type { MediaHandling, MediaOrigin, MediaTarget } from '../options.js';
import {
  audioType,
  fromBase64,
  imageType,
  isRaw,
  joinBytes,
  toBase64,
  withWavHeader,
} from './base64.js';

/**
 * Lets a model generate media, and take any in its input.
 *
 * Generated media become blocks of the answer: images of the built-in tool `image_generation` (Responses API), `images`
 * (OpenRouter and others) and `audio` of chat completions, whose transcript is the text of the answer. Raw samples, which
 * OpenAI streams, become a WAV file. Later requests send images back: as the call of the built-in tool if the vendor made
 * them, else before the next question. Media of more characters than `caps.eventLength` error with `tooLarge`.
 *
 * Media of users and tools that the model does not accept are left out, with a note for the model and a `warning`.
 *
 * @example
 * openai.responses('gpt-5', { builtInTools: [{ type: 'image_generation' }], media: anyMedia });
 */
export const anyMedia: MediaHandling = {
  fromWire: (reader, origin) => {
    const recording = createRecording(origin);
    const read = (data: unknown, readRest: (data: unknown) => Chunks): Chunks => {
      const { rest, images } = withoutImages(data);
      const message = messageIn(data);
      recording.add(at(message, 'audio'));
      const media: Chunks = [
        ...textChunks('text', textAt(message, 'audio', 'transcript')),
        ...imageUrls(message).map((url) => ({
          type: 'block' as const,
          block: imageAt(url, origin.server),
        })),
      ];
      return placed(readRest(rest), images, media, recording, origin);
    };
    return {
      ...reader,
      read: (event) => read(event.data, (data) => reader.read({ ...event, data })),
      readWhole: (body) => read(body, reader.readWhole),
      readDone: () => placed(reader.readDone?.() ?? [], noImages, [], recording, origin),
    };
  },
  toWire: (request, target, { report }) => {
    const { split, fit } = writersOf(target);
    let open: readonly ImageBlock[] = [];
    const messages = request.messages.map((message): Message => {
      if (message.role === 'assistant') {
        const { rest, images } = split(message);
        open = [...open, ...images];
        return rest;
      }
      const { fitted, takeReasons } = fit(message);
      for (const reason of takeReasons()) report({ type: 'warning', message: reason });
      if (fitted.role === 'tool' || open.length === 0) return fitted;
      const question = withImages(open)(fitted);
      open = [];
      return question;
    });
    return { ...request, messages };
  },
};

type Chunks = readonly ModelChunk[];

// ---------------------------------------------------------------- reading

type Images = ReadonlyMap<string, ImageBlock>;

const noImages: Images = new Map();

/**
 * Takes the images out of the calls of the built-in tool, which are sent back: each is kept once, as a block. Keys are the
 * ids of the calls.
 */
const withoutImages = (data: unknown): { readonly rest: unknown; readonly images: Images } => {
  if (!isRecord(data)) return { rest: data, images: noImages };
  const { response } = data;
  const items = [data['item'], ...listAt(data, 'output'), ...listAt(response, 'output')].filter(
    isImageCall,
  );
  if (items.length === 0) return { rest: data, images: noImages };
  const images = new Map(
    items.map((item) => [textAt(item, 'id'), inlineImage(textAt(item, 'result'))] as const),
  );
  const { item, output } = data;
  const rest = {
    ...data,
    ...(item === undefined ? {} : { item: withoutResult(item) }),
    ...(Array.isArray(output) ? { output: output.map(withoutResult) } : {}),
    ...(isRecord(response)
      ? { response: { ...response, output: listAt(response, 'output').map(withoutResult) } }
      : {}),
  };
  return { rest, images };
};

/** A completed call. A call in progress or failed has no result. */
const isImageCall = (item: unknown): boolean =>
  at(item, 'type') === imageCall && textAt(item, 'result') !== '';

const imageCall = 'image_generation_call';

const withoutResult = (item: unknown): unknown => {
  if (!isImageCall(item) || !isRecord(item)) return item;
  const { result: _, ...rest } = item;
  return rest;
};

export const inlineImage = (data: string): ImageBlock => ({
  type: 'image',
  source: { kind: 'base64', mediaType: imageType(data), data },
});

/** The message or the delta of the first choice. */
const messageIn = (data: unknown): unknown => {
  const first = listAt(data, 'choices').find((choice) => (countAt(choice, 'index') ?? 0) === 0);
  return at(first, 'delta') ?? at(first, 'message');
};

const imageUrls = (message: unknown): readonly string[] =>
  [...listAt(message, 'images'), ...listAt(message, 'content')]
    .filter((part) => at(part, 'type') === 'image_url')
    .map((part) => textAt(part, 'image_url', 'url'));

/** An image at a URL of the web, or inline: no other place, such as `file:`. */
export const imageAt = (url: string, server: string): ImageBlock => {
  const block = inlined<ImageBlock>({ type: 'image', source: { kind: 'url', url } });
  const isKnown = block.source.kind === 'base64' || /^https?:\/\//iu.test(url);
  if (isKnown && URL.canParse(url)) return block;
  throw invalid(server, 'an image that is neither base64 nor at a URL');
};

/** Inserts the image of each call after it, and other media before the finish. */
const placed = (
  chunks: Chunks,
  images: Images,
  media: Chunks,
  recording: Recording,
  { vendor }: MediaOrigin,
): Chunks => {
  const all = chunks.flatMap((chunk): Chunks => {
    const item = chunk.type === 'block' ? callIn(chunk.block, vendor) : undefined;
    const block = item === undefined ? undefined : images.get(textAt(item, 'id'));
    return block === undefined ? [chunk] : [chunk, { type: 'block', block }];
  });
  const end = all.findIndex(({ type }) => type === 'finish' || type === 'facts');
  return end === -1
    ? [...all, ...media]
    : [...all.slice(0, end), ...media, ...recording.end(), ...all.slice(end)];
};

/** The call of the built-in tool that a block contains. Earlier versions kept it in the signature of thinking. */
const callIn = (block: AssistantBlock | undefined, vendor: string): unknown => {
  if (block?.type === 'thinking') return decodeSignature(vendor, 'item', block.signature);
  return block?.type === 'vendor' && block.vendor === vendor ? block.data : undefined;
};

interface Recording {
  readonly add: (audio: unknown) => void;
  readonly end: () => Chunks;
}

/** Collects the audio of one answer. Each delta is encoded on its own. */
const createRecording = ({ server, options }: MediaOrigin): Recording => {
  const caps = capsOf(options.caps);
  const format = textAt(options.body, 'audio', 'format') || 'wav';
  let parts: Uint8Array[] = [];
  let length = 0;
  return {
    add: (audio) => {
      const data = textAt(audio, 'data');
      length += data.length;
      if (length > caps.eventLength) throw capExceeded(server, caps, 'eventLength');
      if (data !== '') parts.push(fromBase64(data));
    },
    end: () => {
      if (parts.length === 0) return [];
      const bytes = joinBytes(parts);
      parts = [];
      const data = toBase64(isRaw(format) ? withWavHeader(bytes) : bytes);
      const source = { kind: 'base64', mediaType: audioType(format), data } as const;
      return [{ type: 'block', block: { type: 'audio', source } satisfies AudioBlock }];
    },
  };
};

const invalid = (server: string, what: string): MillraceError =>
  new MillraceError('invalidResponse', `${server} answered with ${what}.`);

// ---------------------------------------------------------------- sending back

interface Split {
  /** The message without media. Text stands for those that the vendor does not take from an assistant. */
  readonly rest: AssistantMessage;
  /** The images to send before the next question. */
  readonly images: readonly ImageBlock[];
}

/** Messages are written once per model, because serialized messages are cached by identity. */
const writersOf = memoizeByObject((target: MediaTarget) => {
  const { profile, path } = target;
  const showsImages = profile.media?.includes('image') !== false;
  const maker = path === '/responses' ? profile.name : undefined;
  return {
    split: memoizeByObject((it: AssistantMessage) => splitMessage(it, showsImages, maker)),
    fit: memoizeByObject((it: UserMessage | ToolMessage) => fitMessage(it, target)),
  };
});

interface Fitted {
  readonly fitted: UserMessage | ToolMessage;
  /** Returns why blocks were left out: once, so that a conversation does not repeat its warnings. */
  readonly takeReasons: () => readonly string[];
}

const fitMessage = (message: UserMessage | ToolMessage, target: MediaTarget): Fitted => {
  let reasons: string[] = [];
  const fit = (block: ContentBlock): ContentBlock => {
    const reason = block.type === 'text' ? undefined : refusalOf(block, target);
    if (reason === undefined) return block;
    reasons.push(`${reason} It was left out.`);
    return textBlock(`[Left out: ${reason}]`);
  };
  const fitted: UserMessage | ToolMessage =
    message.role === 'user'
      ? { ...message, content: message.content.map(fit) }
      : {
          ...message,
          content: message.content.map((it) => ({ ...it, content: it.content.map(fit) })),
        };
  return {
    fitted: reasons.length === 0 ? message : fitted,
    takeReasons: () => {
      const taken = reasons;
      reasons = [];
      return taken;
    },
  };
};

/** Why a block cannot be sent. The writers of the APIs know, and throw. */
const refusalOf = (
  block: MediaBlock,
  { profile, model, path }: MediaTarget,
): string | undefined => {
  try {
    checkMedia(block, { model, media: profile.media });
    (path === '/responses' ? responsesPart : chatPart)(inlined(block), model);
    return undefined;
  } catch (error) {
    if (isMillraceError(error)) return error.message;
    throw error;
  }
};

/** With the name of a vendor, images that it made return to the call that made them. */
const splitMessage = (message: AssistantMessage, showsImages: boolean, maker?: string): Split => {
  const images: ImageBlock[] = [];
  const { content } = message;
  const makerOf = (block: AssistantBlock | undefined): unknown => {
    const item = maker === undefined ? undefined : callIn(block, maker);
    return at(item, 'type') === imageCall && textAt(item, 'result') === '' ? item : undefined;
  };
  const blocks = content.flatMap((block, index): readonly AssistantBlock[] => {
    const next = content[index + 1];
    switch (block.type) {
      case 'vendor':
      case 'thinking': {
        const call = makerOf(block);
        if (!isRecord(call) || maker === undefined) return [block];
        // Without its image, the vendor rejects the call.
        if (next?.type !== 'image' || next.source.kind !== 'base64') return [];
        const data = { ...call, result: next.source.data };
        return [{ type: 'vendor', vendor: maker, kind: imageCall, data }];
      }
      case 'image':
        if (block.source.kind === 'base64' && makerOf(content[index - 1]) !== undefined) return [];
        if (showsImages) images.push(block);
        return [
          textBlock(`[You generated an image here${showsImages ? '' : ', which you cannot see'}.]`),
        ];
      case 'audio':
        // The transcript is the text of the message.
        return textOf(message) === '' ? [textBlock('[You answered with a recording here.]')] : [];
      case 'file':
        return [textBlock('[You generated a file here, which you cannot see.]')];
      default:
        return [block];
    }
  });
  const isSame =
    blocks.length === content.length && blocks.every((it, index) => it === content[index]);
  return { rest: isSame ? message : { ...message, content: blocks }, images };
};

const withImages = (images: readonly ImageBlock[]): ((question: UserMessage) => UserMessage) => {
  const [only, ...more] = images;
  return only === undefined || more.length > 0 ? after(images) : afterImage(only);
};

const after = (images: readonly ImageBlock[]) => (question: UserMessage) => ({
  ...question,
  content: [textBlock('From your earlier answer:'), ...images, ...question.content],
});

const afterImage = memoizeByObject((image: ImageBlock) => memoizeByObject(after([image])));
