/** The text of a reply as it is read: it grows at one end, and is taken from the other. */
export interface Tape {
  push(piece: string): void;
  /** No more will come. */
  end(): void;
  readonly isEnd: boolean;
  /** Nothing but white space stands between here and the beginning of the line. */
  isLineStart: boolean;
  readonly left: number;
  /** The next characters, from a place behind them on. */
  peek(length: number, from?: number): string;
  /** How many characters stand before the next one that a pattern finds; all, where it finds none. The pattern is global. */
  before(pattern: RegExp, from: number): number;
  /** Takes characters away. */
  take(length: number): string;
  /** Lends all that there is, for a reader that looks at each character once. */
  scan(look: (text: string, from: number) => number): void;
  /** Begins to remember what is taken. */
  mark(): void;
  /** What has been taken since the mark. To read it costs as much as there is. */
  readonly taken: string;
  /** Begins to remember anew what is taken, beside what the mark remembers. */
  cut(): void;
  /** What has been taken since the cut. */
  readonly latest: string;
  /** The character that was taken last. */
  readonly last: string;
}

export const createTape = (): Tape => {
  let text = '';
  let at = 0;
  let isEnd = false;
  let isLineStart = true;
  let taken = '';
  let latest = '';
  let last = '';

  const take = (length: number): string => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    taken += piece;
    latest += piece;
    last = piece.slice(-1) || last;
    const line = piece.lastIndexOf('\n');
    const isBlank = line < piece.length - 1 ? piece.slice(line + 1).trim() === '' : true;
    isLineStart = line < 0 ? isLineStart && isBlank : isBlank;
    return piece;
  };
  return {
    push: (piece) => {
      text = at === text.length ? piece : text.slice(at) + piece;
      at = 0;
    },
    end: () => {
      isEnd = true;
    },
    get isEnd() {
      return isEnd;
    },
    get isLineStart() {
      return isLineStart;
    },
    set isLineStart(is) {
      isLineStart = is;
    },
    get left() {
      return text.length - at;
    },
    peek: (length, from = 0) => text.slice(at + from, at + from + length),
    before: (pattern, from) => {
      pattern.lastIndex = at + from;
      return (pattern.exec(text)?.index ?? text.length) - at;
    },
    take,
    scan: (look) => {
      take(look(text, at) - at);
    },
    mark: () => {
      taken = '';
    },
    get taken() {
      return taken;
    },
    cut: () => {
      latest = '';
    },
    get latest() {
      return latest;
    },
    get last() {
      return last;
    },
  };
};

/** Takes text up to where the next mark may be. Each place at the beginning of a line is one. */
export const takeRun = (tape: Tape, marks: RegExp): string => {
  if (tape.peek(1) === '\n' || (tape.isLineStart && tape.peek(1).trim() === '')) {
    return tape.take(tape.before(/\S/g, 0));
  }
  return tape.take(tape.before(marks, 1));
};
