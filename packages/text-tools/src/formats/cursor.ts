/** Whether a mark is here, or may be once more text has arrived. */
export type Found = true | 'more' | undefined;

/** Maximum number of characters that are held back to recognize a mark. */
export const maxHead = 256;

/** The text of a reply as it arrives. Tracks the starts of lines, and Markdown code. */
export type Cursor = ReturnType<typeof createCursor>;

export const createCursor = (leads: RegExp) => {
  let text = '';
  let at = 0;
  let isEnd = false;
  const line = createLine();

  const left = (): number => text.length - at;
  const peek = (length = maxHead, from = 0): string => text.slice(at + from, at + from + length);
  const take = (length: number): string => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    line.take(piece);
    return piece;
  };
  const takeTo = (end: number): string => take((end < 0 ? text.length : end) - at);
  const cursor = {
    push: (piece: string) => {
      text += piece;
    },
    end: () => {
      isEnd = true;
    },
    /** Forgets the text that was taken. */
    compact: (): number => {
      const removed = at;
      text = text.slice(at);
      at = 0;
      return removed;
    },
    get isEnd() {
      return isEnd;
    },
    get text() {
      return text;
    },
    get at() {
      return at;
    },
    get left() {
      return left();
    },
    get isLineStart() {
      return line.isStart;
    },
    get isInCode() {
      return line.isInCode;
    },
    get isIndented() {
      return line.isIndented;
    },
    peek,
    take,
    takeTo,
    /** A mark ends a line, and code. */
    beginLine: line.begin,
  };
  return Object.assign(cursor, lookups(cursor), runs(cursor, line, leads));
};

interface Position {
  readonly text: string;
  readonly at: number;
  readonly left: number;
  readonly isEnd: boolean;
  readonly peek: (length?: number, from?: number) => string;
  readonly take: (length: number) => string;
  readonly takeTo: (end: number) => string;
}

const lookups = (cursor: Position) => ({
  /** Whether a mark is here, in any case: models vary the case of tags. */
  startsWith: (mark: string, from = 0): Found => {
    const { text, at, left, isEnd, peek } = cursor;
    const second = text.charAt(at + from + 1);
    if (second !== '' && second.toLowerCase() !== mark.charAt(1).toLowerCase()) return undefined;
    const piece = peek(mark.length, from).toLowerCase();
    const wanted = mark.toLowerCase();
    if (piece === wanted) return true;
    return !isEnd && piece.length === left - from && wanted.startsWith(piece) ? 'more' : undefined;
  },
  /** Whether the reply ends within this mark. */
  endsWithin: (mark: string, from = 0): boolean => {
    const rest = cursor.peek(mark.length, from).toLowerCase();
    const isLast = cursor.isEnd && rest !== '' && rest.length === cursor.left - from;
    return isLast && mark.toLowerCase().startsWith(rest);
  },
});

const runs = (cursor: Position, line: Line, leads: RegExp) => {
  const { peek, take, takeTo } = cursor;
  const nextLead = (): number => {
    leads.lastIndex = cursor.at + 1;
    return leads.exec(cursor.text)?.index ?? cursor.text.length;
  };
  /** A fence closes with a line of at least as many marks. */
  const takeInFence = (marks: string): string | undefined => {
    if (line.isStart) {
      const next = peek();
      const [closing] = /^[ \t]*[`~]*[ \t]*(?:\n|$)/.exec(next) ?? [];
      const isWhole = closing?.endsWith('\n') === true || cursor.isEnd || next.length >= maxHead;
      if (closing?.length === cursor.left && !isWhole) return undefined;
      if (closing?.trim().startsWith(marks) === true) {
        line.closeFence();
        return take(closing.length);
      }
    }
    const end = cursor.text.indexOf('\n', cursor.at);
    return takeTo(end < 0 ? end : end + 1);
  };
  return {
    /** Takes text up to the next character that may start a mark; nothing if it depends on more text. */
    takeRun: (): string | undefined => {
      if (cursor.left === 0) return undefined;
      if (line.fence !== undefined) return takeInFence(line.fence);
      const next = peek();
      const [space = ''] = line.isStart || next.startsWith('\n') ? (/^\s+/.exec(next) ?? []) : [];
      if (space !== '') return take(space.length);
      const [marks] = /^(?:`+|~+)/.exec(next) ?? [];
      if (marks === undefined) return takeTo(nextLead());
      if (marks.length === cursor.left && marks.length < maxHead && !cursor.isEnd) return undefined;
      line.openCode(marks);
      return take(marks.length);
    },
    /** The same within a thought, which has no code. */
    takeThought: (): string => takeTo(nextLead()),
  };
};

type Line = ReturnType<typeof createLine>;

/** Whether a line has begun, and whether its text is code or a quotation. */
const createLine = () => {
  let isStart = true;
  /** The number of backticks that inline code started with, or 0. */
  let inline = 0;
  let head = '';
  let fence: string | undefined;
  return {
    get isStart() {
      return isStart;
    },
    get isInCode() {
      return inline > 0 || fence !== undefined || /^ {0,3}>/.test(head);
    },
    get isIndented() {
      return /^(?: {4}|\t)/.test(head);
    },
    get fence() {
      return fence;
    },
    take: (piece: string): void => {
      const last = piece.slice(piece.lastIndexOf('\n') + 1);
      const isNext = last.length < piece.length;
      isStart = (isNext || isStart) && last.trim() === '';
      if (isNext) inline = 0;
      head = ((isNext ? '' : head) + last).slice(0, 4);
    },
    /** Backticks or tildes: of a fence at the start of a line, or of inline code, which the same number closes. */
    openCode: (marks: string): void => {
      if (isStart && marks.length >= 3) fence = marks;
      else if (marks.startsWith('`')) {
        if (inline === 0) inline = marks.length;
        else if (inline === marks.length) inline = 0;
      }
    },
    closeFence: (): void => {
      fence = undefined;
    },
    begin: (): void => {
      isStart = true;
      inline = 0;
      head = '';
      fence = undefined;
    },
  };
};

/** Matches the characters that may start a mark. */
export const leadsOf = (marks: readonly string[]): RegExp => {
  const first = new Set(['\n', '`', ...marks.map((mark) => mark.charAt(0))]);
  return new RegExp(
    [...first].map((it) => `\\u{${it.codePointAt(0)?.toString(16) ?? ''}}`).join('|'),
    'gu',
  );
};

/** The first mark that is here; `more` if one may be. */
export const firstOf = <T>(candidates: readonly T[], look: (candidate: T) => Found): Found => {
  let found: Found;
  for (const candidate of candidates) {
    const seen = look(candidate);
    if (seen === true) return true;
    found ??= seen;
  }
  return found;
};
