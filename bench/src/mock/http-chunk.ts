/** Bytes as a chunk of HTTP (RFC 9112, section 7.1). */
export const httpChunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
