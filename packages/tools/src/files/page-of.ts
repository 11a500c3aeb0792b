/** Some lines of a text. */
export interface Page {
  readonly text: string;
  /** Counted from 1. */
  readonly fromLine: number;
  /** The last line of the page. */
  readonly toLine: number;
  readonly totalLines: number;
  /** A line was too long to be shown whole. */
  readonly isCut: boolean;
}

/** Characters of a page, so that it stays whole below the limit for observations. */
const longestPage = 15_000;

/** Takes lines out of a text, as many as there is room for: 15,000 characters. */
export const pageOf = (text: string, fromLine = 1, lines = Infinity): Page => {
  const all = text.replace(/\r?\n$/u, '').split(/\r?\n/u);
  const wanted = all.slice(fromLine - 1, fromLine - 1 + lines);
  let room = longestPage;
  const fitting = wanted.findIndex((line) => (room -= line.length + 1) < 0);
  const shown = fitting < 0 ? wanted : wanted.slice(0, Math.max(fitting, 1));
  const page = shown.join('\n');
  return {
    text: page.slice(0, longestPage),
    fromLine,
    toLine: fromLine - 1 + shown.length,
    totalLines: all.length,
    isCut: page.length > longestPage,
  };
};
