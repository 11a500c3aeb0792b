/** The text of a reply as it arrives. `taken` is the text since the last mark, `latest` that since the last cut. */
export type Cursor = ReturnType<typeof createCursor>;

export const createCursor = (onLineBreak = (): void => undefined) => {
  let text = '';
  let at = 0;
  let isEnd = false;
  let isLineStart = true;
  let taken = '';
  let latest = '';
  let last = '';
  let isInCode = false;
  let head = '';

  const take = (length: number): string => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    taken += piece;
    latest += piece;
    last = piece.slice(-1) || last;
    const line = piece.lastIndexOf('\n');
    const isBlank = line < piece.length - 1 ? piece.slice(line + 1).trim() === '' : true;
    const marks = piece.slice(line + 1).split('`').length - 1;
    head = ((line < 0 ? head : '') + piece.slice(line + 1)).slice(0, 4);
    isInCode = (line < 0 && isInCode) !== (marks % 2 === 1);
    isLineStart = line < 0 ? isLineStart && isBlank : isBlank;
    if (line >= 0) onLineBreak();
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
    /** Number of characters before the next match of a global pattern; all without a match. */
    lengthUntil: (pattern: RegExp, from: number) => {
      pattern.lastIndex = at + from;
      return (pattern.exec(text)?.index ?? text.length) - at;
    },
    /** The number of characters before a mark. */
    find: (mark: string): number | undefined => {
      const found = text.indexOf(mark, at);
      return found < 0 ? undefined : found - at;
    },
    take,
    /** Takes the text up to the position that `look` returns. */
    scan: (look: (text: string, from: number) => number) => take(look(text, at) - at),
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
    get isInCode() {
      return isInCode;
    },
    /** A mark ends a line, and code. */
    beginLine: () => {
      isLineStart = true;
      isInCode = false;
      head = '';
    },
    get isIndented() {
      return /^(?: {4}|\t)/.test(head);
    },
    /** Whether the line is one of a block quote. */
    get isInQuote() {
      return /^ {0,3}>/.test(head);
    },
    get last() {
      return last;
    },
  };
};

/** Takes text up to the next possible mark, such as the start of a line. */
export const takeRun = (cursor: Cursor, marks: RegExp): string => {
  if (cursor.peek(1) === '\n' || (cursor.isLineStart && cursor.peek(1).trim() === '')) {
    return cursor.take(cursor.lengthUntil(/\S/g, 0));
  }
  return cursor.take(cursor.lengthUntil(marks, 1));
};
