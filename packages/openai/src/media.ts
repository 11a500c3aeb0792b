import { type ContentBlock, MillraceError } from '@millrace/core';
import type { MediaType } from './profile.js';

/** A block that is no text. */
export type MediaBlock = Exclude<ContentBlock, { readonly type: 'text' }>;

/** Who a block is for: a model, and the media that it takes. */
export interface MediaTaker {
  readonly model: string;
  readonly media?: readonly MediaType[] | undefined;
}

/** Throws where a model takes no such media. */
export const checkMedia = ({ type }: MediaBlock, { model, media }: MediaTaker): void => {
  if (media?.includes(type) === false) throw unsendable(type, model, 'it takes none');
};

/** The error for a block that cannot be sent, before anything is sent. */
export const unsendable = (type: MediaType, model: string, why: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The model '${model}' cannot be sent this ${type} block: ${why}.`,
  );

/** The address of a picture or file, inline content as a data URI. */
export const addressOf = ({ source }: MediaBlock): string =>
  source.kind === 'url' ? source.url : `data:${source.mediaType};base64,${source.data}`;

/** Gives a block whose address is a data URI its content inline, and media types the names that vendors know. */
export const inlined = <Block extends MediaBlock>(block: Block): Block => {
  const { source } = block;
  if (source.kind === 'base64') {
    return { ...block, source: { ...source, mediaType: usual(source.mediaType) } };
  }
  const [, mediaType, data] = dataUri.exec(source.url) ?? [];
  if (mediaType === undefined || data === undefined) return block;
  return { ...block, source: { kind: 'base64', mediaType: usual(mediaType), data } };
};

const dataUri = /^data:([^;,]+)(?:;[^;,]*)*;base64,(.*)$/isu;

const usual = (mediaType: string): string => mediaType.replace(/^image\/jpg$/iu, 'image/jpeg');

/** What a file is called: some vendors refuse one without a name. */
export const fileName = (block: Extract<MediaBlock, { readonly type: 'file' }>): string => {
  const extension = /\/([a-z0-9]+)$/u.exec(block.source.mediaType ?? '')?.[1] ?? 'bin';
  return block.name ?? `file.${extension}`;
};
