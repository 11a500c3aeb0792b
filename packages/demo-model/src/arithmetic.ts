import { overlaps, type Span } from './phrase.js';

/** An arithmetic expression in the text. */
export interface Expression extends Span {
  /** The words in it that stand for an earlier result. */
  readonly references: readonly Span[];
}

/**
 * Finds the arithmetic expressions of the text: numbers, and what joins them in symbols and plain words. Of words such as
 * `pi` it knows those of the examples. Computing is up to the tool.
 */
export const expressionsIn = (text: string, examples: readonly string[]): readonly Expression[] => {
  const known = new Set(examples.flatMap((it) => it.match(/\p{L}{2,}/gu) ?? []));
  const converted = examples.some((it) => conversionsIn(it).length > 0) ? conversionsIn(text) : [];
  const computed = runsOf(piecesOf(text, known))
    .map(trimmed)
    .filter(isArithmetic)
    .map((run): Expression => {
      const references = run.filter(({ kind }) => kind === 'reference');
      return { start: run[0]?.start ?? 0, end: run.at(-1)?.end ?? 0, references };
    })
    .filter((it) => !converted.some((conversion) => overlaps(it, conversion)))
    // A date or a span of years.
    .filter(({ start, end }) => !/^\d{4}(?:-\d{1,4}){1,2}$/u.test(text.slice(start, end)));
  return [...computed, ...converted].toSorted((a, b) => a.start - b.start);
};

/** Whether the whole string is one expression. */
export const isExpression = (text: string): boolean => {
  const [first] = expressionsIn(text, [text]);
  return first?.start === 0 && first.end === text.length;
};

/** `5 miles to km`. What begins with a capital letter is a name. */
const conversionsIn = (text: string): readonly Expression[] =>
  Array.from(
    text.matchAll(
      /(?<![\w.,])\d[\d.,]{0,20} ?[\p{L}°]{1,20}[²³]? (?:to|in|into) (?!\p{Lu}\p{Ll})[\p{L}°]{1,20}[²³]?/gu,
    ),
    ({ 0: found, index }) => ({ start: index, end: index + found.length, references: [] }),
  );

interface Piece extends Span {
  readonly kind: string;
  readonly text: string;
}

const piece = new RegExp(
  [
    /(?<number>(?:(?<![\p{L}\d)]\s?)-)?\d+(?:,\d{3})*(?:\.\d+)?)/u,
    /(?<operator>\*\*|[<>=!]=|[-+*/^×÷−<>=]|\b(?:plus|minus|times|(?:divided|multiplied) by)\b)/u,
    /(?<joint>\b(?:of|per|mod)\b)|(?<power>[²³]|\b(?:squared|cubed)\b)|(?<percent>%|\bpercent\b)/u,
    /(?<prefix>√|\b(?:square|cube) root\b|\b[a-z]\w{0,20}(?=\())/u,
    /(?<reference>\b(?:the result|the answer|result|it|that|this)\b)/u,
    /(?<open>\()|(?<close>\))|(?<comma>,)|(?<word>\p{L}[\p{L}\d_]*)|(?<other>\S)/u,
  ]
    .map(({ source }) => source)
    .join('|'),
  'giu',
);

const piecesOf = (text: string, known: ReadonlySet<string>): readonly Piece[] =>
  Array.from(text.matchAll(piece), ({ 0: found, index, groups = {} }) => {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined) ?? 'other';
    const isKnown = kind === 'word' && found !== 'to' && known.has(found);
    const end = index + found.length;
    return { kind: isKnown ? 'constant' : kind, text: found, start: index, end };
  });

const beginsValue = new Set(['number', 'reference', 'open', 'prefix']);
const endsValue = new Set(['number', 'reference', 'constant', 'close', 'power']);

/** Pieces without a word between them, and without two values side by side. */
const runsOf = (pieces: readonly Piece[]): readonly (readonly Piece[])[] => {
  const runs: Piece[][] = [[]];
  let depth = 0;
  for (const next of pieces) {
    const isOutside = depth === 0 && (next.kind === 'close' || next.kind === 'comma');
    const isEnd = isOutside || next.kind === 'word' || next.kind === 'other';
    const isBeside = beginsValue.has(next.kind) && endsValue.has(runs.at(-1)?.at(-1)?.kind ?? '');
    if (isEnd || isBeside) {
      runs.push([]);
      depth = 0;
    }
    if (!isEnd) runs.at(-1)?.push(next);
    if (next.kind === 'open') depth += 1;
    if (next.kind === 'close' && depth > 0) depth -= 1;
  }
  return runs;
};

/** A run from its first value to its last one. With an operator left over, it is a part of something unknown: `x + 2 * 3`. */
const trimmed = (run: readonly Piece[]): readonly Piece[] => {
  const start = run.findIndex(({ kind }) => beginsValue.has(kind));
  const end = run.findLastIndex(({ kind }) => endsValue.has(kind) || kind === 'percent') + 1;
  const rest = [...run.slice(0, Math.max(start, 0)), ...run.slice(end)];
  const isWhole = start >= 0 && !rest.some(({ kind, text }) => kind === 'operator' && text !== '=');
  return isWhole ? run.slice(start, end) : [];
};

const isArithmetic = (run: readonly Piece[]): boolean => {
  const count = (...kinds: readonly string[]): number =>
    run.filter(({ kind }) => kinds.includes(kind)).length;
  const isJoined = count('operator', 'joint', 'percent') > 0;
  return (
    count('number', 'reference') > 0 &&
    count('open') === count('close') &&
    (count('power', 'prefix') > 0 || (isJoined && count('number', 'reference', 'constant') > 1))
  );
};
