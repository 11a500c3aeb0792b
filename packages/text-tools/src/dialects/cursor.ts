/** The buffered text of a reply. `taken` is the text since the last mark, `latest` that since the last cut. */
export type Cursor = ReturnType<typeof createCursor>;

export const createCursor = () => {
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
    get isInCode() {
      return isInCode;
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

/** Markers of the end of a turn: removed from the end, with everything after them. */
const ends = ['<|im_end|>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>'];
const begins = ['<|im_start|>', '<|start_header_id|>', '<start_of_turn>'];
const maxHeld = 120;

const nextTurn =
  /<(?:\|im_end\||\|eot_id\||\|end\||end_of_turn)>\s{0,9}<(?:\|im_start\||\|start_header_id\||start_of_turn)>/;

/** Removes the markers at the end of a turn from the text that a reader gets. */
export const createEnding = () => {
  let held = '';
  let last = '';
  let hasOpening = false;
  let isOver = false;

  const keep = (text: string): string => {
    let at = text.indexOf('<', Math.max(0, text.length - maxHeld));
    while (at >= 0 && !mayEnd(text.slice(at))) at = text.indexOf('<', at + 1);
    held = at < 0 ? '' : text.slice(at);
    return at < 0 ? text : text.slice(0, at);
  };
  return {
    push: (piece: string) => {
      // `<s>` and `</s>` also mean strikethrough.
      hasOpening ||= (last + piece).includes('<s>');
      last = (last + piece).slice(-2);
      const text = held + piece;
      const turn = nextTurn.exec(text)?.index;
      if (turn === undefined) return keep(text);
      isOver = true;
      held = '';
      return text.slice(0, turn);
    },
    end: () => {
      const isMark = isWhole(held) && !(hasOpening && held.includes('</s>'));
      const rest = isMark ? '' : held;
      held = '';
      return rest;
    },
    get held() {
      return held.length;
    },
    get isOver() {
      return isOver;
    },
  };
};

const afterMarks = (text: string): string => {
  const token = ends.find((it) => text.startsWith(it));
  return token === undefined ? text : afterMarks(text.slice(token.length).trimStart());
};

const isWhole = (text: string): boolean => afterMarks(text) === '';

const mayEnd = (text: string): boolean => {
  const rest = afterMarks(text);
  const followsMark = rest.length < text.length;
  return [...ends, ...(followsMark ? begins : [])].some((it) => it.startsWith(rest));
};
