/** Decodes text: by its byte order mark, what HTML declares, as UTF-8, or else as Windows-1252, as browsers do. */
export const decodeText = (bytes: Uint8Array, isHtml: boolean): string => {
  const charset = markOf(bytes) ?? (isHtml ? declaredIn(bytes) : undefined);
  return decodeAs(charset !== undefined && isKnown(charset) ? charset : undefined, bytes);
};

/** Decodes text in a known charset. Without one, it is UTF-8, or else Windows-1252, as in browsers. */
export const decodeAs = (charset: string | undefined, bytes: Uint8Array): string => {
  if (charset === undefined) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      return decodeAs('windows-1252', bytes);
    }
  }
  const decoder = new TextDecoder(charset);
  const text = decoder.decode(bytes);
  if (decoder.encoding !== 'windows-1252') return text;
  // Node 20 decodes these as control characters.
  return text.replace(/[\u0080-\u009f]/gu, (it) => windows1252[it.charCodeAt(0) - 0x80] ?? it);
};

const windows1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** The encoding of a byte order mark, which takes precedence over all declarations. */
export const markOf = ([first, second, third]: Uint8Array): string | undefined => {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
};

export const isKnown = (charset: string): boolean => {
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
