import { type Cursor, createCursor } from '../cursor.js';

/** Whether a mark is here, or may be once more text has arrived. */
export type Found = true | 'more' | undefined;

/** Maximum number of characters that are held back to recognize a mark. */
export const maxHead = 256;

/** The text of a reply. Knows Markdown code, and the characters that may start a mark. */
export type MarkCursor = ReturnType<typeof createMarkCursor>;

export const createMarkCursor = (leads: RegExp) => {
  /** The number of backticks that inline code started with, or 0. */
  let inline = 0;
  let fence: string | undefined;
  const cursor = createCursor(() => {
    inline = 0;
  });
  const { peek, take, lengthUntil, find, beginLine } = cursor;

  /** Backticks or tildes: of a fence at the start of a line, or of inline code, which the same number closes. */
  const openCode = (marks: string): void => {
    if (cursor.isLineStart && marks.length >= 3) fence = marks;
    else if (marks.startsWith('`')) {
      if (inline === 0) inline = marks.length;
      else if (inline === marks.length) inline = 0;
    }
  };
  /** A fence closes with a line of at least as many marks. */
  const takeInFence = (marks: string): string | undefined => {
    if (cursor.isLineStart) {
      const next = peek(maxHead);
      const [closing] = /^[ \t]*[`~]*[ \t]*(?:\n|$)/.exec(next) ?? [];
      const isWhole = closing?.endsWith('\n') === true || cursor.isEnd || next.length >= maxHead;
      if (closing?.length === cursor.left && !isWhole) return undefined;
      if (closing?.trim().startsWith(marks) === true) {
        fence = undefined;
        return take(closing.length);
      }
    }
    return take((find('\n') ?? cursor.left) + 1);
  };
  return Object.assign(cursor, {
    ...lookups(cursor),
    /** Whether the text here is code or a quotation. */
    isQuoted: () => inline > 0 || fence !== undefined || cursor.isInQuote,
    /** Takes text up to the next character that may start a mark; nothing if it depends on more text. */
    takeRun: (): string | undefined => {
      if (cursor.left === 0) return undefined;
      if (fence !== undefined) return takeInFence(fence);
      const next = peek(maxHead);
      const isLine = cursor.isLineStart || next.startsWith('\n');
      const [space = ''] = isLine ? (/^\s+/.exec(next) ?? []) : [];
      if (space !== '') return take(space.length);
      const [marks] = /^(?:`+|~+)/.exec(next) ?? [];
      if (marks === undefined) return take(lengthUntil(leads, 1));
      if (marks.length === cursor.left && marks.length < maxHead && !cursor.isEnd) return undefined;
      openCode(marks);
      return take(marks.length);
    },
    /** The same within a thought, which has no code. */
    takeThought: (): string => take(lengthUntil(leads, 1)),
    beginLine: (): void => {
      beginLine();
      inline = 0;
      fence = undefined;
    },
  });
};

const lookups = (cursor: Cursor) => ({
  /** Whether a mark is here, in any case: models vary the case of tags. */
  startsWith: (mark: string, from = 0): Found => {
    const second = cursor.peek(1, from + 1);
    if (second !== '' && second.toLowerCase() !== mark.charAt(1).toLowerCase()) return undefined;
    const piece = cursor.peek(mark.length, from).toLowerCase();
    const wanted = mark.toLowerCase();
    if (piece === wanted) return true;
    const mayGrow = !cursor.isEnd && piece.length === cursor.left - from;
    return mayGrow && wanted.startsWith(piece) ? 'more' : undefined;
  },
  /** Whether the reply ends within this mark. */
  endsWithin: (mark: string, from = 0): boolean => {
    const rest = cursor.peek(mark.length, from).toLowerCase();
    const isLast = cursor.isEnd && rest !== '' && rest.length === cursor.left - from;
    return isLast && mark.toLowerCase().startsWith(rest);
  },
});

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
