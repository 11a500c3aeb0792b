import { type ContentBlock, MillraceError } from 'millrace';
import type { MediaType } from './profile.js';

export type MediaBlock = Exclude<ContentBlock, { readonly type: 'text' }>;

export interface MediaTaker {
  readonly model: string;
  readonly media?: readonly MediaType[] | undefined;
}

/** Throws if the model does not accept such media. */
export const checkMedia = ({ type }: MediaBlock, { model, media }: MediaTaker): void => {
  if (media?.includes(type) === false)
    throw unsendable(type, model, `it does not accept ${type} blocks`);
};

export const unsendable = (type: MediaType, model: string, why: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The model '${model}' does not accept this ${type} block: ${why}.`,
  );

/** The URL of an image or file; a data URI for inline content, and the id of content that the vendor stores. */
export const addressOf = ({ source }: MediaBlock): string => {
  switch (source.kind) {
    case 'url':
      return source.url;
    case 'id':
      return source.id;
    case 'base64':
      return `data:${source.mediaType};base64,${source.data}`;
  }
};

/** Converts a data URI to inline content, and normalizes the media type to the name that vendors know. */
export const inlined = <Block extends MediaBlock>(block: Block): Block => {
  const { source } = block;
  if (source.kind === 'base64') {
    return { ...block, source: { ...source, mediaType: normalized(source.mediaType) } };
  }
  const [, mediaType, data] = source.kind === 'url' ? (dataUri.exec(source.url) ?? []) : [];
  if (mediaType === undefined || data === undefined) return block;
  return { ...block, source: { kind: 'base64', mediaType: normalized(mediaType), data } };
};

const dataUri = /^data:([^;,]+)(?:;[^;,]*)*;base64,(.*)$/isu;

const normalized = (mediaType: string): string => mediaType.replace(/^image\/jpg$/iu, 'image/jpeg');

/** The name of a file, or a default: some vendors reject files without a name. */
export const fileName = (block: Extract<MediaBlock, { readonly type: 'file' }>): string => {
  const extension = /\/([a-z0-9]+)$/u.exec(block.source.mediaType ?? '')?.[1] ?? 'bin';
  return block.name ?? `file.${extension}`;
};
