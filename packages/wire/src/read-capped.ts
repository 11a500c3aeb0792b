/** Reads the text of a body, at most so many bytes of it, and leaves the rest unread. */
export const readCapped = async (
  body: ReadableStream<Uint8Array> | null,
  bytes: number,
): Promise<string> => {
  if (body === null) return '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
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
