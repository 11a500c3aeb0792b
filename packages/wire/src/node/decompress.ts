import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';

/** Decoders by content coding. */
type Decoders = ReadonlyMap<string, () => Transform>;

const loadDecoders = async (): Promise<Decoders> => {
  const { createGunzip, createInflate, createBrotliDecompress } = await import('node:zlib');
  return new Map<string, () => Transform>([
    ['gzip', createGunzip],
    ['x-gzip', createGunzip],
    ['deflate', createInflate],
    ['br', createBrotliDecompress],
  ]);
};

/**
 * Decodes the body of a response by its `content-encoding`. If one of the codings is unknown, the body stays encoded,
 * as with `fetch`. Truncated or corrupt data errors with an error of zlib.
 */
export const decompress = async (message: IncomingMessage): Promise<Readable> => {
  const codings = codingsOf(message);
  if (codings.length === 0) return message;
  const [decoders, { pipeline }] = await Promise.all([loadDecoders(), import('node:stream')]);
  const chain = codings.flatMap((coding) => decoders.get(coding) ?? []);
  return chain.length < codings.length
    ? message
    : chain.reduceRight<Readable>(
        (content, decoder) => pipeline(content, decoder(), () => undefined),
        message,
      );
};

/** In the order in which they were applied. */
const codingsOf = ({ headers }: IncomingMessage): readonly string[] =>
  (headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
