/** Decodes text: by its byte order mark, what HTML declares, as UTF-8, or else as Windows-1252, as browsers do. */
export const decodeText = (bytes: Uint8Array, isHtml: boolean): string => {
  const charset = markOf(bytes) ?? (isHtml ? declaredIn(bytes) : undefined);
  if (charset !== undefined && isKnown(charset)) return new TextDecoder(charset).decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
};

const markOf = ([first, second, third]: Uint8Array): string | undefined => {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
};

const isKnown = (charset: string): boolean => {
  try {
    return new TextDecoder(charset).encoding !== '';
  } catch {
    return false;
  }
};

/**
 * Reads `<meta charset>`, which the first 1,024 bytes must contain. A file in which it can be read is not UTF-16: see "prescan
 * a byte stream" of the HTML standard.
 */
const declaredIn = (bytes: Uint8Array): string | undefined => {
  const start = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024));
  const [, charset] = /<meta[^>]{0,200}charset\s*=\s*["']?([^\s"';,>/]{1,40})/iu.exec(start) ?? [];
  return charset !== undefined && /^utf-?16/iu.test(charset) ? 'utf-8' : charset;
};
