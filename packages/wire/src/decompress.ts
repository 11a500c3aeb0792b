import type { Transform } from 'node:stream';

/** Decompresses a body, with backpressure in both directions. */
export interface Decompressor {
  /** Returns whether it takes more now; otherwise `drained` is called. */
  readonly write: (bytes: Uint8Array) => boolean;
  readonly end: () => void;
  /** Resumes after `bytes` returned false. */
  readonly resume: () => void;
  readonly destroy: () => void;
}

export interface Consumer {
  readonly bytes: (bytes: Uint8Array) => boolean;
  readonly end: () => void;
  /** Also for truncated or corrupt data, with an error of zlib. */
  readonly fail: (error: unknown) => void;
  readonly drained: () => void;
}

/** As Node's `fetch`: a server may list any number. */
const maxCodings = 5;

/**
 * Creates the decompressor for a `content-encoding`. Returns `undefined` without one, and if a coding is unknown: then
 * the body stays encoded, as with `fetch`.
 */
export const decompressorFor = (
  encoding: string | null,
  consumer: Consumer,
): Decompressor | undefined => {
  const decoders = decodersOf(encoding);
  const [first] = decoders;
  if (first === undefined) return undefined;
  const last = decoders.slice(1).reduce<Transform>((before, next) => before.pipe(next), first);
  for (const decoder of decoders) decoder.on('error', consumer.fail);
  first.on('drain', consumer.drained);
  last.on('end', consumer.end);
  last.on('data', (bytes: Uint8Array) => {
    if (!consumer.bytes(bytes)) last.pause();
  });
  return {
    write: (bytes) => first.write(bytes),
    end: () => first.end(),
    resume: () => last.resume(),
    destroy: () => decoders.forEach((decoder) => decoder.destroy()),
  };
};

/** In the order in which they have to be undone. */
const decodersOf = (encoding: string | null): readonly Transform[] => {
  if (encoding === null) return [];
  const zlib = process.getBuiltinModule('node:zlib');
  const makers: Readonly<Record<string, () => Transform>> = {
    gzip: zlib.createGunzip,
    'x-gzip': zlib.createGunzip,
    deflate: zlib.createInflate,
    br: zlib.createBrotliDecompress,
  };
  const codings = encoding
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const isKnown = codings.every((coding) => Object.hasOwn(makers, coding));
  return isKnown && codings.length <= maxCodings
    ? codings.reverse().flatMap((coding) => makers[coding]?.() ?? [])
    : [];
};
