import type { BodyReader } from './body-reader.js';

/** Reads the text of a body, at most so many bytes of it, and leaves the rest unread. */
export const readCapped = async (
  reader: BodyReader | undefined,
  bytes: number,
): Promise<string> => {
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  let left = bytes;
  let text = '';
  try {
    while (left > 0) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value.subarray(0, left), { stream: true });
      left -= value.length;
    }
  } catch {
    // What came before the connection broke says more than that it broke.
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return text + decoder.decode();
};
