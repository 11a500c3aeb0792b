/** A part of the text of a response. */
export interface DecodedText {
  readonly text: string;
  /** Bytes of it are not UTF-8, and U+FFFD replaces them. A valid U+FFFD is not damage. */
  readonly isDamaged: boolean;
}

/** Decodes the bytes of one response incrementally. */
export interface Utf8 {
  /** Returns the complete characters so far that have not been returned yet. */
  push(bytes: Uint8Array): string;
  /** As `push`. If bytes are damaged, each line is a part of its own. */
  lines(bytes: Uint8Array): readonly DecodedText[];
  /** Returns the rest at the end of the bytes: U+FFFD for an incomplete character. */
  end(): string;
}

/** Not in stream mode, which takes seven times as long in Node and returns strings of twice the size. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

const strictDecoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

const empty = new Uint8Array();

/** Creates a UTF-8 decoder for chunks that may be split anywhere. It keeps a byte order mark. */
export const createUtf8 = (): Utf8 => {
  let pending: Uint8Array = empty;
  const whole = (bytes: Uint8Array): Uint8Array => {
    const all = pending.length === 0 ? bytes : concat(pending, bytes);
    const complete = all.length - incompleteLength(all);
    pending = complete === all.length ? empty : all.slice(complete);
    return pending.length === 0 ? all : all.subarray(0, complete);
  };
  return {
    push: (bytes) => decoder.decode(whole(bytes)),
    lines: (bytes) => {
      const complete = whole(bytes);
      const decoded = decode(complete);
      return decoded.isDamaged ? linesOf(complete).map(decode) : [decoded];
    },
    end: () => decoder.decode(pending),
  };
};

const decode = (bytes: Uint8Array): DecodedText => {
  const text = decoder.decode(bytes);
  return { text, isDamaged: text.includes('\uFFFD') && !isUtf8(bytes) };
};

const isUtf8 = (bytes: Uint8Array): boolean => {
  try {
    strictDecoder.decode(bytes);
    return true;
  } catch {
    return false;
  }
};

/** The lines of bytes, each with its line feed. */
const linesOf = (bytes: Uint8Array): readonly Uint8Array[] => {
  const lines: Uint8Array[] = [];
  for (let from = 0; from < bytes.length;) {
    const feed = bytes.indexOf(0x0a, from);
    const end = feed === -1 ? bytes.length : feed + 1;
    lines.push(bytes.subarray(from, end));
    from = end;
  }
  return lines;
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
