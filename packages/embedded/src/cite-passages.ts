import { coverage, focusOf } from './excerpt.js';
import { foundNothing, type Passage, passagesOf } from './read-result.js';

/** Passages that an answer quotes. */
const mostQuotes = 2;

const longestQuote = 400;

/** A passage that holds less of the question's words than this does not answer it. */
const enough = 0.6;

/**
 * Answers a question with the passages that a search found, quoted and with their sources; says so where none
 * of them holds enough of the question's words.
 */
export const citePassages = (question: string, result: string): string => {
  const words = focusOf(question);
  const telling = new Set([...words].filter((stem) => !/^\d+$/u.test(stem)));
  const focus = telling.size > 0 ? telling : words;
  const rated = passagesOf(result).map((passage) => rate(passage, focus));
  const fitting = foundNothing(result) ? [] : rated.filter(({ held }) => held >= enough);
  const [first, ...others] = fitting.toSorted((a, b) => b.score - a.score);
  if (first !== undefined) {
    const quoted = [first, ...others.filter(({ score }) => score >= enough)].slice(0, mostQuotes);
    return [...new Set(quoted.map(quote))].join('\n\n');
  }
  const nearest = rated.find(({ held }) => held > 0)?.passage.source;
  const hint = nearest === undefined ? '' : ` The nearest passage is in ${nearest}.`;
  return `The documents do not seem to answer “${question}”.${hint}`;
};

interface Rated {
  readonly passage: Passage;
  readonly statements: readonly string[];
  /** The part of the question's words, from 0 to 1, that the whole passage holds. */
  readonly held: number;
  /** The part that its best statement holds; half of it where that is code. */
  readonly score: number;
  /** Which statement that is. */
  readonly best: number;
}

const rate = (passage: Passage, focus: ReadonlySet<string>): Rated => {
  const { source = '', text } = passage;
  const statements = statementsOf(text.slice(0, 4_000).replace(/^…\s*/u, ''));
  const weighed = (score: number, statement: string): number =>
    score * (isProse(statement) ? 1 : 0.5);
  const own = statements.map((it) => weighed(coverage(it, focus), it));
  const scores = statements.map((it) => weighed(coverage(`${source} ${it}`, focus), it));
  return {
    passage,
    statements,
    held: coverage(`${source} ${text}`, focus),
    score: Math.max(0, ...scores),
    best: own.indexOf(Math.max(...own)),
  };
};

const isProse = (statement: string): boolean =>
  (statement.match(/[{}=;<>]/gu)?.length ?? 0) <= statement.length * 0.03;

/** The statements of a passage from the best one, as many as a quote may hold, and where they stand. */
const quote = ({ passage: { source }, statements, best }: Rated): string => {
  const start = statements.join(' ').length <= longestQuote ? 0 : best;
  const text = statements.slice(start).join(' ');
  const isLong = text.length > longestQuote;
  const shown = isLong ? `${text.slice(0, longestQuote).replace(/\s\S*$/u, '')} …` : text;
  return `“${start > 0 ? '… ' : ''}${shown}”${source === undefined ? '' : ` (${source})`}`;
};

/** Paragraphs, items of lists and rows of tables, each taken apart at its sentences, without Markdown's signs. */
const statementsOf = (text: string): readonly string[] =>
  text
    .split(/\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+[.)] |```))/u)
    .map(plainLine)
    .filter((line) => line !== '')
    .flatMap((line) => line.split(/(?<=[.!?]) (?=\p{Lu})/u));

const plainLine = (line: string): string =>
  line
    .trim()
    .replace(/^(?:[-*>] |#{1,6} |\d+[.)] |```\w*|\|[-| :]+\|?$)/u, '')
    .replace(/\*\*|^\s*\||\|\s*$/gu, '')
    .replace(/\s+/gu, ' ')
    .trim();
