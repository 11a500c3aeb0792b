import { type ContentBlock, type MediaSource, MillraceError } from 'millrace';
import type { JsonRecord } from '@millrace/wire';
import type { AiSdkLanguageModel, SupportedUrls } from './provider-types.js';

export type MediaBlock = Exclude<ContentBlock, { readonly type: 'text' }>;

export type MediaTaker = Pick<AiSdkLanguageModel, 'specificationVersion' | 'provider'> & {
  readonly supportedUrls: SupportedUrls;
};

/** The media part of a prompt. Throws `invalidRequest` for a source that the provider cannot take. */
export const toFilePart = (block: MediaBlock, model: MediaTaker): JsonRecord => {
  const name = block.type === 'file' ? block.name : undefined;
  return {
    type: 'file',
    ...fileData(block, model),
    ...(name === undefined ? {} : { filename: name }),
  };
};

/** The media part of a tool result. */
export const toResultPart = (block: MediaBlock, model: MediaTaker): JsonRecord => {
  if (model.specificationVersion === 'v4') return toFilePart(block, model);
  const { source } = block;
  const kind = block.type === 'image' ? 'image' : 'file';
  if (source.kind === 'id') {
    return { type: kind === 'image' ? 'image-file-id' : 'file-id', fileId: source.id };
  }
  const { data, mediaType } = fileData(block, model);
  return data instanceof URL
    ? { type: `${kind}-url`, url: data.href }
    : { type: `${kind}-data`, data, mediaType };
};

const fileData = (block: MediaBlock, model: MediaTaker): JsonRecord => {
  const { source } = block;
  const mediaType = mediaTypeOf(block);
  const isTagged = model.specificationVersion === 'v4';
  switch (source.kind) {
    case 'base64':
      return { mediaType, data: isTagged ? { type: 'data', data: source.data } : source.data };
    case 'url': {
      const inline = inlineIn(source.url);
      if (inline !== undefined) return fileData({ ...block, source: inline }, model);
      checkUrl(block, source.url, mediaType, model);
      const url = new URL(source.url);
      return { mediaType, data: isTagged ? { type: 'url', url } : url };
    }
    case 'id':
      if (isTagged) {
        const [family = model.provider] = model.provider.split('.');
        return { mediaType, data: { type: 'reference', reference: { [family]: source.id } } };
      }
      throw unsendable(
        block,
        model,
        'providers of @ai-sdk/provider 3 take no ids of stored files',
        'Send its bytes, or use a newer package of the provider.',
      );
  }
};

const wildcards = { image: 'image/*', audio: 'audio/*', file: 'application/octet-stream' } as const;

const mediaTypeOf = ({ type, source }: MediaBlock): string => {
  if (source.mediaType !== undefined) return source.mediaType.toLowerCase();
  const isPdf = type === 'file' && source.kind === 'url' && /\.pdf(?:[?#]|$)/i.test(source.url);
  return isPdf ? 'application/pdf' : wildcards[type];
};

const inlineIn = (url: string): Extract<MediaSource, { readonly kind: 'base64' }> | undefined => {
  const [, mediaType, data] = dataUrl.exec(url) ?? [];
  return mediaType === undefined || data === undefined
    ? undefined
    : { kind: 'base64', mediaType, data };
};

const dataUrl = /^data:([^;,]+)(?:;[^;,]*)*;base64,(.*)$/isu;

/** Millrace downloads nothing: a URL of a message may point into your network. */
const checkUrl = (block: MediaBlock, url: string, mediaType: string, model: MediaTaker): void => {
  const isFetched = Object.entries(model.supportedUrls).some(
    ([pattern, urls]) =>
      isOfType(mediaType, pattern) && urls.some((known) => new RegExp(known).test(url)),
  );
  if (isFetched) return;
  throw unsendable(
    block,
    model,
    `the provider does not fetch this URL, and Millrace does not download it`,
    `Send its bytes as base64.`,
  );
};

const isOfType = (mediaType: string, pattern: string): boolean => {
  if (pattern === '*' || pattern === '*/*' || pattern === mediaType) return true;
  const [top = ''] = pattern.split('/');
  const isWide = !pattern.includes('/') || pattern.endsWith('/*') || mediaType.endsWith('/*');
  return isWide && mediaType.startsWith(`${top}/`);
};

const unsendable = (
  { type }: MediaBlock,
  { provider }: MediaTaker,
  why: string,
  fix: string,
): MillraceError =>
  new MillraceError('invalidRequest', `${provider} cannot take this ${type}: ${why}. ${fix}`);
