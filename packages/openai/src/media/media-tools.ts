import {
  type AudioBlock,
  type ContentBlock,
  type FileBlock,
  MillraceError,
  type ModelChunk,
  tool,
  type Tool,
  type ToolContext,
  toolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  checkOptions,
  isFlag,
  isFunction,
  isText,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  at,
  checkModelCall,
  type JsonRecord,
  listAt,
  type Reader,
  textAt,
  textChunks,
  vendorModel,
  type VendorSettings,
} from '@millrace/wire';
import {
  defer,
  filter,
  map,
  mergeMap,
  type Observable,
  type ObservableInput,
  take,
  throwIfEmpty,
} from 'rxjs';
import { accessOf, serverOf } from '../access.js';
import { createRequests } from '../client.js';
import { fileName, inlined } from '../media.js';
import { chatRules, type EndpointOptions } from '../options.js';
import { exampleOf, type Profile } from '../profile.js';
import { checkProfile } from '../profile-rules.js';
import { imageAt, inlineImage } from './any-media.js';
import { audioType, fromBase64, isRaw, toBase64, withWavHeader } from './base64.js';
import { mediaFetch } from './media-fetch.js';

/** Options of all tools that generate or read media. `baseURL` ends with `/v1`. */
export interface MediaToolOptions
  extends VendorSettings, Pick<EndpointOptions, 'organization' | 'project' | 'body'> {
  /** Must be unique among the tools of an agent. */
  readonly name?: string | undefined;
  /** Describes the tool to the model: what it does, and when to use it. */
  readonly description?: string | undefined;
}

/** Options of `textToSpeech`. */
export interface TextToSpeechOptions extends MediaToolOptions {
  /** The voice, by the vendor's name for it. Default: `alloy`. */
  readonly voice?: string | undefined;
  /** `pcm` becomes a WAV file. Default: `mp3`. */
  readonly format?: 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm' | undefined;
  /** How to speak, for models that take instructions. */
  readonly instructions?: string | undefined;
  /** The maximum length of the text in characters. Default: 4,096, which is OpenAI's limit. */
  readonly maxLength?: number | undefined;
}

/**
 * Creates the tool `speak`, which makes a recording of text over `/audio/speech`. Its result is an audio block. Requests have
 * the transport, the time-outs, the caps and the retries of a model; unsubscribing aborts. Throws a `MillraceError`
 * (`config`) for a missing name or an invalid option.
 *
 * @example
 * createAgent({ model, tools: [textToSpeech(profiles.openai, 'gpt-4o-mini-tts', { voice: 'coral' })] });
 */
export const textToSpeech = (
  profile: Profile,
  model: string,
  options: TextToSpeechOptions = {},
): Tool => {
  const ask = client(profile, model, options, '/audio/speech', 'gpt-4o-mini-tts', speechRules);
  const { voice = 'alloy', format = 'mp3', instructions, maxLength = 4_096 } = options;
  const { name = 'speak', description = 'Speaks: makes a recording of your words for the user.' } =
    options;
  const fields = {
    voice,
    response_format: format,
    ...(instructions === undefined ? {} : { instructions }),
  };
  return tool({
    name,
    description,
    input: jsonSchema({
      type: 'object',
      properties: { text: textProperty('What to say, word for word.', maxLength) },
      required: ['text'],
      additionalProperties: false,
    }),
    run: ({ text }, context) =>
      ask({ ...fields, input: text }, context, (server) =>
        whole((body) => [{ type: 'block', block: speechIn(server, body, format) }]),
      ).pipe(
        blocksOnly,
        map((block) => toolOutput({ content: [block] })),
      ),
  });
};

type Recording = AudioBlock | FileBlock;

/** Options of `transcription`. */
export interface TranscriptionOptions extends MediaToolOptions {
  /**
   * Loads a recording by the name that the model gives, from a folder, uploads or `context.messages`: emits it once, or
   * nothing if it does not exist. Errors are reported to the model.
   */
  readonly load$: (recording: string, context: ToolContext) => ObservableInput<Recording>;
  /** The language, in ISO 639-1. Default: the model detects it. */
  readonly language?: string | undefined;
  /** Emits the transcript while it is written, for servers that stream it. Default: false. */
  readonly stream?: boolean | undefined;
}

/**
 * Creates the tool `transcribe`, which makes text of a recording over `/audio/transcriptions`. Its result is the
 * transcript; with `stream`, each part of it is an `actingChunk`. Otherwise as `textToSpeech`.
 *
 * @example
 * transcription(profiles.openai, 'gpt-4o-mini-transcribe', { load$: (name) => readRecording(name) });
 */
export const transcription = (
  profile: Profile,
  model: string,
  options: TranscriptionOptions,
): Tool => {
  const path = '/audio/transcriptions';
  const ask = client(profile, model, options, path, 'gpt-4o-mini-transcribe', transcriptionRules);
  checkOptions('transcription()', options, transcriptionRules, ['load$']);
  const { load$, language, stream = false } = options;
  const { name = 'transcribe', description = 'Transcribes a recording: returns what is said.' } =
    options;
  const fields = {
    response_format: 'json',
    ...(language === undefined ? {} : { language }),
    ...(stream ? { stream } : {}),
  };
  return tool({
    name,
    description,
    idempotent: true,
    input: jsonSchema({
      type: 'object',
      properties: { recording: textProperty('The name of the recording.', 1_000) },
      required: ['recording'],
      additionalProperties: false,
    }),
    run: ({ recording }, context) =>
      defer(() => load$(recording, context)).pipe(
        take(1),
        throwIfEmpty(() => new Error(`There is no recording '${recording.slice(0, 200)}'.`)),
        map(uploadOf),
        mergeMap((file) => ask({ ...fields, file }, context, transcriptReader)),
        filter((chunk) => chunk.type === 'text'),
        map((chunk) => chunk.text),
      ),
  });
};

/** Options of `imageGenerator`. */
export interface ImageGeneratorOptions extends MediaToolOptions {
  /** Width and height, such as `1024x1024`. Default: the model's. */
  readonly size?: string | undefined;
  /** The quality, by the vendor's name for it. Default: the model's. */
  readonly quality?: string | undefined;
}

/**
 * Creates the tool `draw`, which makes an image of a description over `/images/generations`. Its result is an image
 * block. Otherwise as `textToSpeech`.
 *
 * @example
 * imageGenerator(profiles.openai, 'gpt-image-1', { size: '1024x1024' });
 */
export const imageGenerator = (
  profile: Profile,
  model: string,
  options: ImageGeneratorOptions = {},
): Tool => {
  const ask = client(profile, model, options, '/images/generations', 'gpt-image-1', imageRules);
  const { size, quality } = options;
  const { name = 'draw', description = 'Makes an image of a description.' } = options;
  const fields = {
    ...(size === undefined ? {} : { size }),
    ...(quality === undefined ? {} : { quality }),
  };
  return tool({
    name,
    description,
    input: jsonSchema({
      type: 'object',
      properties: { prompt: textProperty('What the image shows, in detail.', 32_000) },
      required: ['prompt'],
      additionalProperties: false,
    }),
    run: ({ prompt }, context) =>
      ask({ ...fields, prompt }, context, (server) =>
        whole((body) => [{ type: 'block', block: imageIn(server, body) }]),
      ).pipe(
        blocksOnly,
        map((block) => toolOutput({ content: [block] })),
      ),
  });
};

// ---------------------------------------------------------------- requests

type Chunks = readonly ModelChunk[];
type ReaderOf = (server: string) => Reader;

type Ask = (fields: JsonRecord, context: ToolContext, readerOf: ReaderOf) => Observable<ModelChunk>;

const toolRules: Readonly<Record<keyof MediaToolOptions, Rule>> = (({
  reasoningEffort: _,
  media: __,
  ...rules
}) => ({ ...rules, name: isText, description: isText }))(chatRules);

const speechRules: Readonly<Record<keyof TextToSpeechOptions, Rule>> = {
  ...toolRules,
  voice: isText,
  format: oneOf('mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'),
  instructions: isText,
  maxLength: wholeNumber(1),
};

const transcriptionRules: Readonly<Record<keyof TranscriptionOptions, Rule>> = {
  ...toolRules,
  load$: isFunction,
  language: isText,
  stream: isFlag,
};

const imageRules: Readonly<Record<keyof ImageGeneratorOptions, Rule>> = {
  ...toolRules,
  size: isText,
  quality: isText,
};

/** Returns a function that sends one request and emits the chunks of its answer, as a model does. */
const client = (
  profile: Profile,
  model: string,
  options: MediaToolOptions,
  path: string,
  example: string,
  rules: Readonly<Record<string, Rule>>,
): Ask => {
  checkProfile(profile);
  const ofVendor = exampleOf(profile, example);
  checkModelCall({ vendor: profile.name, example: ofVendor, model, options, rules });
  const access = accessOf(profile, options);
  const requests = createRequests(profile, access, path, options);
  const server = serverOf(profile, access.baseURL);
  const fetch = mediaFetch(options.fetch);
  return (fields, { demand, scheduler, toolCallId }, readerOf) =>
    vendorModel(
      {
        name: model,
        exchange: () => ({
          vendor: server,
          ...requests(JSON.stringify({ model, ...fields, ...options.body })),
          ...readerOf(server),
        }),
      },
      { ...options, fetch },
    ).stream$(
      { messages: [] },
      { demand, scheduler, report: () => undefined, stepId: toolCallId, random: Math.random },
    );
};

const textProperty = (description: string, maxLength: number) =>
  ({ type: 'string', minLength: 1, maxLength, description }) as const;

const blocksOnly = (chunks$: Observable<ModelChunk>): Observable<ContentBlock> =>
  chunks$.pipe(
    filter((chunk) => chunk.type === 'block'),
    map(({ block }) => block),
    filter((block) => block.type !== 'vendor'),
  );

// ---------------------------------------------------------------- answers

const finish: ModelChunk = { type: 'finish', finish: 'stop' };

/** Reads an answer that is one JSON document. */
const whole = (chunksOf: (body: unknown) => Chunks): Reader => ({
  read: ({ data }) => [...chunksOf(data), finish],
  readWhole: (body) => [...chunksOf(body), finish],
});

const speechIn = (server: string, body: unknown, format: string): AudioBlock => {
  const data = textAt(body, 'data');
  if (data === '') throw invalid(server, 'no audio');
  const source = {
    kind: 'base64',
    mediaType: audioType(format),
    data: isRaw(format) ? toBase64(withWavHeader(fromBase64(data))) : data,
  } as const;
  return { type: 'audio', source };
};

const imageIn = (server: string, body: unknown): ContentBlock => {
  const [image] = listAt(body, 'data');
  const data = textAt(image, 'b64_json');
  if (data !== '') return inlineImage(data);
  const url = textAt(image, 'url');
  if (url !== '') return imageAt(url, server);
  throw invalid(server, 'no image');
};

/** Reads a transcript: whole, as the events of OpenAI, or as the chunks of vLLM. */
const transcriptReader: ReaderOf = (server) => {
  let isStreamed = false;
  const deltaIn = (data: unknown): string => {
    const isDelta = textAt(data, 'type') === 'transcript.text.delta';
    return isDelta ? textAt(data, 'delta') : textAt(listAt(data, 'choices')[0], 'delta', 'content');
  };
  return {
    read: ({ data }) => {
      const delta = deltaIn(data);
      isStreamed ||= delta !== '';
      if (textAt(data, 'type') !== 'transcript.text.done') return textChunks('text', delta);
      return [...textChunks('text', isStreamed ? '' : textAt(data, 'text')), finish];
    },
    readWhole: (body) => {
      const text = at(body, 'text');
      if (typeof text !== 'string') throw invalid(server, 'no transcript');
      return [{ type: 'text', text }, finish];
    },
    readDone: () => [finish],
  };
};

const invalid = (server: string, what: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${server} answered with ${what}. Check the name of the model.`,
  );

const uploadOf = (block: Recording) => {
  const { source } = inlined(block);
  if (source.kind !== 'base64' || !/^[a-z\d+/=\s]*$/iu.test(source.data)) {
    throw new Error(`'load$' has to emit the recording in base64.`);
  }
  const { mediaType, data } = source;
  const name = fileName({ type: 'file', source, ...(block.type === 'file' ? block : {}) });
  return { name, mediaType, data };
};
