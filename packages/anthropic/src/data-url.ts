import type { MediaSource } from 'millrace';
import { toBase64 } from './base64.js';

const dataUrl = /^data:([^,]*?)(;base64)?,(.*)$/isu;

/**
 * Converts a data URL to inline data; any other source stays the same. Returns `undefined` for a malformed URL.
 * https://www.rfc-editor.org/rfc/rfc2397
 */
export const withoutDataUrl = (source: MediaSource): MediaSource | undefined => {
  if (source.kind !== 'url' || !/^data:/iu.test(source.url)) return source;
  const [, typeAndParameters = '', base64, data = ''] = dataUrl.exec(source.url) ?? [];
  const text = decoded(data);
  if (text === undefined) return undefined;
  return {
    kind: 'base64',
    mediaType:
      source.mediaType ??
      (typeAndParameters.startsWith(';') || typeAndParameters === ''
        ? `text/plain${typeAndParameters}`
        : typeAndParameters),
    data: base64 === undefined ? toBase64(new TextEncoder().encode(text)) : text,
  };
};

const decoded = (data: string): string | undefined => {
  try {
    return decodeURIComponent(data);
  } catch {
    return undefined;
  }
};
