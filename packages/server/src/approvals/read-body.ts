/** Reads a request body as UTF-8; `undefined` if it exceeds `maxBytes`. Rejects if it is interrupted or not UTF-8. */
export const readBody = async (
  { body, headers }: Request,
  maxBytes: number,
): Promise<string | undefined> => {
  if (Number(headers.get('content-length')) > maxBytes) {
    await body?.cancel();
    return undefined;
  }
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const pieces: string[] = [];
  let length = 0;
  if (body === null) return '';
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return [...pieces, decoder.decode()].join('');
    length += value.byteLength;
    if (length > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    pieces.push(decoder.decode(value, { stream: true }));
  }
};
