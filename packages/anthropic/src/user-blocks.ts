import type {
  BetaBase64ImageSource as Base64ImageSource,
  BetaCacheControlEphemeral as CacheControlEphemeral,
  BetaRequestDocumentBlock as DocumentBlockParam,
  BetaImageBlockParam as ImageBlockParam,
  BetaTextBlockParam as TextBlockParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import {
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  type MediaSource,
  MillraceError,
} from 'millrace';
import { textFromBase64 } from './base64.js';
import { cacheMark, cacheTime } from './cache-marks.js';
import { withoutDataUrl } from './data-url.js';

/** Blocks that users and tool results may contain. */
export type UserBlock = TextBlockParam | ImageBlockParam | DocumentBlockParam;

/**
 * Maps the content of users and tools. It leaves out blank text, which the API rejects. Throws `invalidRequest` for
 * unsupported media; `where` names the owner of the blocks in the error.
 */
export const toUserBlocks = (blocks: readonly ContentBlock[], where: string): UserBlock[] =>
  blocks.flatMap((block): UserBlock[] => {
    switch (block.type) {
      case 'text':
        return toText(block.text).map((text) => Object.assign(text, marked(block)));
      case 'image':
        return [{ type: 'image', source: imageSource(block, where), ...marked(block) }];
      case 'file':
        return [toDocument(block, where)];
      case 'audio':
        throw refusal(where, 'an audio block', 'Anthropic models do not support audio.');
    }
  });

const marked = ({
  cache,
}: Pick<ContentBlock, 'cache'>): { readonly cache_control?: CacheControlEphemeral } => {
  const time = cacheTime(cache);
  return time === undefined ? {} : { cache_control: cacheMark(time) };
};

/** Returns a text block, or no block for blank text. */
export const toText = (text: string): TextBlockParam[] =>
  text.trim() === '' ? [] : [{ type: 'text', text }];

type ImageType = Base64ImageSource['media_type'];

const imageTypes: readonly ImageType[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Common aliases. */
const aliases: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['image/pjpeg', 'image/jpeg'],
  ['image/x-png', 'image/png'],
]);

/** Without parameters, such as a charset. */
const essenceOf = (mediaType: string): string => {
  const essence = mediaType.toLowerCase().split(';', 1).join('').trim();
  return aliases.get(essence) ?? essence;
};

const imageSource = (block: ImageBlock, where: string): ImageBlockParam['source'] => {
  const source = sourceOf(block, where);
  if (source.kind === 'url') return { type: 'url', url: source.url };
  if (source.kind === 'id') return { type: 'file', file_id: source.id };
  const mediaType = imageTypes.find((type) => type === essenceOf(source.mediaType));
  if (mediaType !== undefined) {
    return { type: 'base64', media_type: mediaType, data: source.data };
  }
  throw refusal(where, `an image of the type '${source.mediaType}'`, `Use ${list(imageTypes)}.`);
};

const toDocument = (block: FileBlock, where: string): DocumentBlockParam => ({
  type: 'document',
  source: documentSource(block, where),
  ...(block.name === undefined ? {} : { title: block.name }),
  ...(block.citations === undefined ? {} : { citations: { enabled: block.citations } }),
  ...marked(block),
});

const documentSource = (block: FileBlock, where: string): DocumentBlockParam['source'] => {
  const source = sourceOf(block, where);
  if (source.kind === 'id') return { type: 'file', file_id: source.id };
  const mediaType = essenceOf(source.mediaType ?? pdf);
  if (source.kind === 'url') {
    if (mediaType === pdf) return { type: 'url', url: source.url };
    throw refusal(where, `a file of the type '${mediaType}' by URL`, `Only ${pdf} may be a URL.`);
  }
  if (mediaType === pdf) return { type: 'base64', media_type: pdf, data: source.data };
  const data = textFromBase64(source.data);
  if (isText(mediaType) && data !== '') return { type: 'text', media_type: 'text/plain', data };
  throw refusal(where, `a file of the type '${mediaType}'`, `Use ${pdf}, or any type of text.`);
};

const pdf = 'application/pdf';

/** Other readable types are sent as plain text, the only text type that the API accepts. */
const isText = (mediaType: string): boolean =>
  /^text\/|^application\/(.+\+)?(json|xml|yaml)\b/.test(mediaType);

/** The vendor only fetches http and https URLs. */
const sourceOf = ({ type, source }: ImageBlock | FileBlock, where: string): MediaSource => {
  const inline = withoutDataUrl(source);
  if (inline !== undefined && (inline.kind !== 'url' || /^https?:\/\//iu.test(inline.url))) {
    return inline;
  }
  throw refusal(
    where,
    `${type === 'image' ? 'an image' : 'a file'} with an unsupported URL`,
    `Use http, https, or a data: URL.`,
  );
};

const refusal = (where: string, what: string, hint: string): MillraceError => {
  const why = `${what}, which cannot be sent. ${hint}`;
  return new MillraceError('invalidRequest', `${where} has ${why}`, {
    userMessage: `The conversation has ${why}`,
  });
};

const list = (names: readonly string[]): string =>
  `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
