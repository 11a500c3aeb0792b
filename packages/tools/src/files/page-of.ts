/** Consecutive lines of text. */
export interface Page {
  readonly text: string;
  /** Starts at 1. */
  readonly fromLine: number;
  readonly toLine: number;
  readonly totalLines: number;
  /** Whether a line was truncated because it is too long. */
  readonly isCut: boolean;
}

/** In characters: less than the limit for tool results, which would truncate the page. */
const maxLength = 15_000;

/** Returns as many lines as fit into 15,000 characters. */
export const pageOf = (text: string, fromLine = 1, lines = Infinity): Page => {
  const all = text.replace(/\r?\n$/u, '').split(/\r?\n/u);
  const wanted = all.slice(fromLine - 1, fromLine - 1 + lines);
  let room = maxLength;
  const fitting = wanted.findIndex((line) => (room -= line.length + 1) < 0);
  const shown = fitting < 0 ? wanted : wanted.slice(0, Math.max(fitting, 1));
  const page = shown.join('\n');
  return {
    text: page.slice(0, maxLength),
    fromLine,
    toLine: fromLine - 1 + shown.length,
    totalLines: all.length,
    isCut: page.length > maxLength,
  };
};
