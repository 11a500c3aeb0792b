import { asksForDefinition, questionFocus } from './question-focus.js';
import { foundNothing, type Passage, passagesOf } from './read-result.js';
import { stemsOf } from './words.js';

/** Passages that an answer quotes. */
const mostQuotes = 2;

const longestQuote = 400;

/** A passage that holds less of the question's words than this may not answer it. */
const enough = 0.6;

/** One that holds less than this is not worth a quote, and where the search doubts it, one below the other. */
const little = 0.4;
const least = 0.3;

/**
 * Answers a question with the passages that a search found, quoted and with their sources. What the search says
 * of their relevance counts. A doubtful passage is quoted as such; only where nothing fits at all, the documents
 * are said not to answer.
 */
export const citePassages = (question: string, result: string): string => {
  const isDoubted = foundNothing(result);
  // What says that nothing was found is no passage.
  const passages = passagesOf(result).filter(
    ({ source, text }) => source !== undefined || !foundNothing(text),
  );
  const rated = rateAll(question, passages).toSorted((a, b) => b.rank - a.rank);
  const [first, ...others] = isDoubted ? [] : rated.filter(isFitting);
  if (first !== undefined) {
    const quoted = [first, ...others.filter(({ score }) => score >= enough)].slice(0, mostQuotes);
    return [...new Set(quoted.map(quote))].join('\n\n');
  }
  const nearest = rated.find(({ held }) => held > 0);
  if (nearest !== undefined && nearest.held >= (isDoubted ? least : little))
    return `The nearest passage, which may not answer it: ${quote(nearest)}`;
  const source = nearest?.passage.source;
  const hint = source === undefined ? '' : ` The nearest passage is in ${source}.`;
  return `The documents do not seem to answer “${question}”.${hint}`;
};

const isFitting = ({ passage, held }: Rated): boolean =>
  held >= enough || (passage.relevance ?? 0) >= enough;

interface Rated {
  readonly passage: Passage;
  readonly statements: readonly string[];
  /** The part of the question's words, from 0 to 1, that the whole passage holds: the rarer ones weigh more. */
  readonly held: number;
  /** The part that its best statement holds; half of it where that is code. */
  readonly score: number;
  /** What the passages are sorted by. */
  readonly rank: number;
  /** Which statement is the best. */
  readonly best: number;
}

const rateAll = (question: string, passages: readonly Passage[]): readonly Rated[] => {
  const focus = questionFocus(question);
  const stems = passages.map(({ source = '', text }) => new Set(stemsOf(`${source} ${text}`)));
  const weightOf = (stem: string): number =>
    Math.log(1 + passages.length / (stems.filter((it) => it.has(stem)).length + 0.5));
  const share = (text: string): number => {
    const words = new Set(stemsOf(text.slice(0, 4_000)));
    const sum = (list: readonly string[]): number =>
      list.reduce((all, stem) => all + weightOf(stem), 0);
    return focus.size === 0 ? 0 : sum([...focus].filter((it) => words.has(it))) / sum([...focus]);
  };
  const named = asksForDefinition(question) ? focus : new Set<string>();
  return passages.map((passage) => rate(passage, share, named));
};

const rate = (
  passage: Passage,
  share: (text: string) => number,
  named: ReadonlySet<string>,
): Rated => {
  const { source = '', text, relevance = 0 } = passage;
  const statements = statementsOf(text.slice(0, 4_000).replace(/^…\s*/u, ''));
  const weighed = (score: number, statement: string): number =>
    score * (isProse(statement) ? 1 : 0.5);
  const own = statements.map((it) => weighed(share(it), it));
  const scores = statements.map((it) => weighed(share(`${source} ${it}`), it));
  const score = Math.max(0, ...scores);
  return {
    passage,
    statements,
    held: share(`${source} ${text}`),
    score,
    rank: score + relevance / 2 + (isAbout(source, named) ? 0.5 : 0) - (isProse(text) ? 0 : 0.3),
    best: own.indexOf(Math.max(...own)),
  };
};

/** The last heading of a source is what the question names. */
const isAbout = (source: string, named: ReadonlySet<string>): boolean => {
  const stems = stemsOf(source.split(/ [›>»] |#/u).at(-1) ?? '');
  return stems.length > 0 && stems.every((stem) => named.has(stem));
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
