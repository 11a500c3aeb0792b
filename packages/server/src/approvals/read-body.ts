/** Reads the body of a request as UTF-8, as long as it has not more bytes than that; `undefined` where it has. Rejects where it breaks off. */
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
