/** The text of a reply as it is read: it grows at one end, and is taken from the other. `taken` goes back to the mark, `latest` to the cut. */
export type Tape = ReturnType<typeof createTape>;

export const createTape = () => {
  let text = '';
  let at = 0;
  let isEnd = false;
  let isLineStart = true;
  let taken = '';
  let latest = '';
  let last = '';
  let isInCode = false;

  const take = (length: number): string => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    taken += piece;
    latest += piece;
    last = piece.slice(-1) || last;
    const line = piece.lastIndexOf('\n');
    const isBlank = line < piece.length - 1 ? piece.slice(line + 1).trim() === '' : true;
    const marks = piece.slice(line + 1).split('`').length - 1;
    isInCode = (line < 0 && isInCode) !== (marks % 2 === 1);
    isLineStart = line < 0 ? isLineStart && isBlank : isBlank;
    return piece;
  };
  return {
    push: (piece: string) => {
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
    set isLineStart(is: boolean) {
      isLineStart = is;
    },
    get left() {
      return text.length - at;
    },
    peek: (length: number, from = 0) => text.slice(at + from, at + from + length),
    /** How many characters stand before the next one that a global pattern finds; all, where it finds none. */
    before: (pattern: RegExp, from: number) => {
      pattern.lastIndex = at + from;
      return (pattern.exec(text)?.index ?? text.length) - at;
    },
    take,
    scan: (look: (text: string, from: number) => number) => {
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
    /** A backtick has opened code on this line. */
    get isInCode() {
      return isInCode;
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
