import type { RetrievedPassage, Span } from './passages.js';

export interface CitedNumber {
  readonly number: number;
  /** Spans of the marks with this number, such as `[1]` or `[1, 3]`, in order. */
  readonly spans: readonly Span[];
}

export interface Citation extends CitedNumber {
  readonly passage: RetrievedPassage;
}

export interface Citations {
  readonly cited: readonly Citation[];
  /** Numbers without a passage: invented by the model, or not citations, such as a year. */
  readonly unknown: readonly CitedNumber[];
}

/**
 * Finds which passages of `numbered` an answer cites, and where. Marks are `[1]`, `[1, 3]` and `[1][2]`; those in code
 * and links do not count. A citation does not prove that the passage supports the statement.
 */
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

/** Blanks out code, links with their text, and link definitions in Markdown, and keeps all positions. */
const proseOf = (text: string): string =>
  withoutLinks(withoutCode(withoutFences(text)).replace(definition, blank));

const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** Also in a quote or at the start of an item. The info string of backtick fences has no backtick. */
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

const definition = /^[ >]{0,3}\[[^[\]\n]+\]:[ \t]*\S+[ \t\r]*$/gmu;

/** A paragraph break, which ends all open code and links. */
const gap = '\\n[^\\S\\n]*(?=\\n)';

/** Inline code ends at an equally long run of backticks in the same paragraph; otherwise it is not code. */
const withoutCode = (text: string): string => {
  const runs = [...text.matchAll(new RegExp(`\`+|${gap}`, 'gu'))];
  const ends = endsOf(runs.map(([run]) => run));
  const spans: TextRange[] = [];
  for (let at = 0; at < runs.length; at += 1) {
    const [first, last] = [runs[at], runs[ends[at] ?? at]];
    if (first === undefined || last === undefined || first === last) continue;
    spans.push({ from: first.index, to: last.index + last[0].length });
    at = ends[at] ?? at;
  }
  return blankSpans(text, spans);
};

/** For each run of backticks, the index of the next run of the same length in its paragraph. */
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

/** The target of a link and its title: `(docs/guide.md "Guide")`. May contain balanced parentheses. */
const target =
  /\([ \t]{0,9}(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()<]*)*)(?:[ \t]{1,9}(?:"[^"\n]*"|'[^'\n]*'))?[ \t]{0,9}\)/uy;

const withoutLinks = (text: string): string => {
  const spans: TextRange[] = [];
  let open: number[] = [];
  for (const { 0: token, index } of text.matchAll(new RegExp(`[[\\]]|${gap}`, 'gu'))) {
    if (token === '[') open.push(index);
    else if (token !== ']') open = [];
    else {
      const from = open.pop();
      target.lastIndex = index + 1;
      if (from !== undefined && target.test(text)) spans.push({ from, to: target.lastIndex });
    }
  }
  return blankSpans(text, spans);
};

interface TextRange {
  readonly from: number;
  readonly to: number;
}

const blankSpans = (text: string, spans: readonly TextRange[]): string => {
  const parts: string[] = [];
  let end = text.length;
  for (const { from, to } of spans.toReversed()) {
    if (from >= end) continue;
    parts.push(text.slice(Math.min(to, end), end), blank(text.slice(from, Math.min(to, end))));
    end = from;
  }
  return [...parts, text.slice(0, end)].toReversed().join('');
};
