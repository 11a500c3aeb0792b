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
  let isLineStart = true;
  /** The number of backticks that inline code started with, or 0. */
  let inline = 0;
  /** The start of the line. */
  let head = '';
  let fence: string | undefined;

  const left = (): number => text.length - at;
  const peek = (length = maxHead, from = 0): string => text.slice(at + from, at + from + length);
  const take = (length: number): string => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    const line = piece.slice(piece.lastIndexOf('\n') + 1);
    const isNext = line.length < piece.length;
    isLineStart = (isNext || isLineStart) && line.trim() === '';
    if (isNext) inline = 0;
    head = ((isNext ? '' : head) + line).slice(0, 4);
    return piece;
  };
  const takeTo = (end: number): string => take((end < 0 ? text.length : end) - at);
  const nextLead = (): number => {
    leads.lastIndex = at + 1;
    return leads.exec(text)?.index ?? text.length;
  };
  /** A fence closes with a line of at least as many marks. */
  const takeInFence = (marks: string): string | undefined => {
    if (isLineStart) {
      const line = peek();
      const [closing] = /^[ \t]*[`~]*[ \t]*(?:\n|$)/.exec(line) ?? [];
      if (
        closing?.length === left() &&
        !closing.endsWith('\n') &&
        !isEnd &&
        line.length < maxHead
      ) {
        return undefined;
      }
      if (closing?.trim().startsWith(marks) === true) {
        fence = undefined;
        return take(closing.length);
      }
    }
    const line = text.indexOf('\n', at);
    return takeTo(line < 0 ? line : line + 1);
  };

  return {
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
      return isLineStart;
    },
    get isInCode() {
      return inline > 0 || fence !== undefined || /^ {0,3}>/.test(head);
    },
    /** Whether the line is indented as code is. */
    get isIndented() {
      return /^(?: {4}|\t)/.test(head);
    },
    peek,
    take,
    takeTo,
    /** A mark ends a line, and code. */
    beginLine: () => {
      isLineStart = true;
      inline = 0;
      head = '';
      fence = undefined;
    },
    /** Whether a mark is here, in any case: models vary the case of tags. */
    startsWith: (mark: string, from = 0): Found => {
      const second = text.charAt(at + from + 1);
      if (second !== '' && second.toLowerCase() !== mark.charAt(1).toLowerCase()) return undefined;
      const piece = peek(mark.length, from).toLowerCase();
      const wanted = mark.toLowerCase();
      if (piece === wanted) return true;
      return !isEnd && piece.length === left() - from && wanted.startsWith(piece)
        ? 'more'
        : undefined;
    },
    /** Whether the reply ends within this mark. */
    endsWithin: (mark: string, from = 0): boolean => {
      const rest = peek(mark.length, from).toLowerCase();
      const isLast = isEnd && rest !== '' && rest.length === left() - from;
      return isLast && mark.toLowerCase().startsWith(rest);
    },
    /** Takes text up to the next character that may start a mark; nothing if it depends on more text. */
    takeRun: (): string | undefined => {
      if (left() === 0) return undefined;
      if (fence !== undefined) return takeInFence(fence);
      const next = peek();
      const [space = ''] = isLineStart || next.startsWith('\n') ? (/^\s+/.exec(next) ?? []) : [];
      if (space !== '') return take(space.length);
      const [marks] = /^(?:`+|~+)/.exec(next) ?? [];
      if (marks === undefined) return takeTo(nextLead());
      if (marks.length === left() && marks.length < maxHead && !isEnd) return undefined;
      if (isLineStart && marks.length >= 3) fence = marks;
      else if (marks.startsWith('`')) {
        if (inline === 0) inline = marks.length;
        else if (inline === marks.length) inline = 0;
      }
      return take(marks.length);
    },
    /** The same within a thought, which has no code. */
    takeThought: (): string => takeTo(nextLead()),
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
