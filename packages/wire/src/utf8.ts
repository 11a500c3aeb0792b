/** Decodes the bytes of one response incrementally. */
export interface Utf8 {
  /** Returns the complete characters so far that have not been returned yet. */
  push(bytes: Uint8Array): string;
  /** Returns the rest at the end of the bytes: U+FFFD for an incomplete character. */
  end(): string;
}

/** Not in stream mode, which takes seven times as long in Node and returns strings of twice the size. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const empty = new Uint8Array();

/** Creates a UTF-8 decoder for chunks that may be split anywhere. It keeps a byte order mark. */
export const createUtf8 = (): Utf8 => {
  let pending: Uint8Array = empty;
  return {
    push: (bytes) => {
      const all = pending.length === 0 ? bytes : concat(pending, bytes);
      const complete = all.length - incompleteLength(all);
      pending = complete === all.length ? empty : all.slice(complete);
      return decoder.decode(pending.length === 0 ? all : all.subarray(0, complete));
    },
    end: () => decoder.decode(pending),
  };
};

const concat = (begin: Uint8Array, rest: Uint8Array): Uint8Array => {
  const all = new Uint8Array(begin.length + rest.length);
  all.set(begin);
  all.set(rest, begin.length);
  return all;
};

/** The number of trailing bytes of an incomplete character. Only a byte from 0xC0 up starts a multibyte character. */
const incompleteLength = (bytes: Uint8Array): number => {
  for (let length = 1; length <= 3; length += 1) {
    const byte = bytes.at(-length) ?? 0;
    if (byte >= 0xc0) return length < sequenceLength(byte) ? length : 0;
    if (byte < 0x80) return 0;
  }
  return 0;
};

const sequenceLength = (first: number): number => (first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2);
