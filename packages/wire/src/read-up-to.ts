import type { BodyReader } from './body-reader.js';

/** Reads up to `bytes` of a body as text, and discards the rest. */
export const readUpTo = async (reader: BodyReader | undefined, bytes: number): Promise<string> => {
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
    // The text that arrived is more useful than the error of the connection.
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return text + decoder.decode();
};
