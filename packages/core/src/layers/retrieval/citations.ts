import type { RetrievedPassage, Span } from './retriever.js';

/** A number that a text cites. */
export interface CitedNumber {
  readonly number: number;
  /** Where the marks that hold it stand in the text, such as `[1]` or `[1, 3]`, in their order. */
  readonly spans: readonly Span[];
}

/** A passage that a text cites. */
export interface Citation extends CitedNumber {
  readonly passage: RetrievedPassage;
}

/** What a text cites. */
export interface Citations {
  /** In the order in which they are first cited. */
  readonly cited: readonly Citation[];
  /** Numbers that no passage has: made up, or no citations, such as a year. */
  readonly unknown: readonly CitedNumber[];
}

/** Finds which of the passages that a model was shown by `numbered` its answer cites, and where. Marks are `[1]`, `[1, 3]` and `[1][2]`; in code and in links they are none. That a passage is cited does not say that it bears the statement out. */
export const citationsIn = (text: string, passages: readonly RetrievedPassage[]): Citations => {
  const cited: Citation[] = [];
  const unknown: CitedNumber[] = [];
  for (const [number, spans] of spansByNumber(text)) {
    const passage = passages[number - 1];
    if (passage === undefined) unknown.push({ number, spans });
    else cited.push({ number, passage, spans });
  }
  return { cited, unknown };
};

const mark = /(?<!\\)\[[ \t]*((?:0|[1-9]\d{0,8})(?:[ \t]*,[ \t]*(?:0|[1-9]\d{0,8}))*)[ \t]*\]/gu;

const spansByNumber = (text: string): ReadonlyMap<number, readonly Span[]> => {
  const found = new Map<number, Span[]>();
  for (const { 0: written, 1: numbers = '', index } of proseOf(text).matchAll(mark)) {
    const span = { from: index, to: index + written.length };
    for (const number of new Set(numbers.split(',').map(Number))) {
      const spans = found.get(number);
      if (spans === undefined) found.set(number, [span]);
      else spans.push(span);
    }
  }
  return found;
};

/** Blanks out what is code or a link in a Markdown text: blocks between fences, code in a line, links with their text, and the lines that define links. The result has the length of the text, and its prose in the same places. */
const proseOf = (text: string): string =>
  withoutLinks(withoutCode(withoutFences(text)).replace(definition, blank));

/** By UTF-16 units, so that the length stays. */
const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** Also in a quote or at the beginning of an item. What stands behind backticks holds no backtick. */
const fence = /^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}(?=[^`]*$)|~{3,})/u;

const withoutFences = (text: string): string => {
  const kept: string[] = [];
  let open: string | undefined;
  for (const line of text.split('\n')) {
    const marks = fence.exec(line)?.[1];
    const isOutside = open === undefined && marks === undefined;
    kept.push(isOutside ? line : blank(line));
    if (open === undefined) open = marks;
    else if (isEndOf(open, line)) open = undefined;
  }
  return kept.join('\n');
};

const isEndOf = (open: string, line: string): boolean => {
  const marks = line.replace(/^[\s>]*/u, '').trimEnd();
  return marks.startsWith(open) && marks === marks.charAt(0).repeat(marks.length);
};

/** Such as `[1]: docs/guide.md`. */
const definition = /^[ >]{0,3}\[[^[\]\n]+\]:[ \t]*\S+[ \t\r]*$/gmu;

/** Between paragraphs, where whatever is open ends. */
const gap = '\\n[^\\S\\n]*(?=\\n)';

/** Code ends at as many backticks as it begins with, in the same paragraph; where these are missing, it is none. */
const withoutCode = (text: string): string => {
  const runs = [...text.matchAll(new RegExp(`\`+|${gap}`, 'gu'))];
  const ends = endsOf(runs.map(([run]) => run));
  const stretches: Stretch[] = [];
  for (let at = 0; at < runs.length; at += 1) {
    const [first, last] = [runs[at], runs[ends[at] ?? at]];
    if (first === undefined || last === undefined || first === last) continue;
    stretches.push({ from: first.index, to: last.index + last[0].length });
    at = ends[at] ?? at;
  }
  return blanked(text, stretches);
};

/** For each run of backticks, the next one like it in its paragraph, or none. */
const endsOf = (runs: readonly string[]): readonly (number | undefined)[] => {
  const next = new Map<number, number>();
  const ends = runs.map((): number | undefined => undefined);
  for (const [at, run] of [...runs.entries()].reverse()) {
    if (!run.startsWith('`')) next.clear();
    else {
      ends[at] = next.get(run.length);
      next.set(run.length, at);
    }
  }
  return ends;
};

/** Where a link leads, and its title: `(docs/guide.md "Guide")`. Brackets may stand in it in pairs. */
const target =
  /\([ \t]{0,9}(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()<]*)*)(?:[ \t]{1,9}(?:"[^"\n]*"|'[^'\n]*'))?[ \t]{0,9}\)/uy;

const withoutLinks = (text: string): string => {
  const stretches: Stretch[] = [];
  let open: number[] = [];
  for (const { 0: token, index } of text.matchAll(new RegExp(`[[\\]]|${gap}`, 'gu'))) {
    if (token === '[') open.push(index);
    else if (token !== ']') open = [];
    else {
      const from = open.pop();
      target.lastIndex = index + 1;
      if (from !== undefined && target.test(text)) stretches.push({ from, to: target.lastIndex });
    }
  }
  return blanked(text, stretches);
};

interface Stretch {
  readonly from: number;
  readonly to: number;
}

const blanked = (text: string, stretches: readonly Stretch[]): string => {
  const parts: string[] = [];
  let end = text.length;
  for (const { from, to } of stretches.toReversed()) {
    if (from >= end) continue;
    parts.push(text.slice(Math.min(to, end), end), blank(text.slice(from, Math.min(to, end))));
    end = from;
  }
  return [...parts, text.slice(0, end)].toReversed().join('');
};
