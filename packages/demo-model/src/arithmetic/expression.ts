import { withoutPoliteness } from '../without-politeness.js';
import type { Span } from '../words.js';
import type { ExpressionOptions, Node } from './node.js';
import { arithmeticPieces, type Piece } from './pieces.js';
import { readArithmetic } from './read-arithmetic.js';

/** Arithmetic that was found in a text, written as an expression. */
export interface Expression extends Span {
  readonly text: string;
  /** It needs a result that is not there yet. */
  readonly waits: boolean;
}

/**
 * Finds arithmetic in a text, in signs or in English, and writes it as expressions that calculators commonly
 * take: `17.5% of 2,349` gives `17.5% * 2349`, `the square root of nine` gives `sqrt(9)`. A number alone is none,
 * and neither is a part of a formula that cannot be read as a whole.
 */
export const readExpressions = (
  text: string,
  options: ExpressionOptions = {},
): readonly Expression[] => {
  const pieces = arithmeticPieces(text.slice(0, longestText));
  const readFrom = nodeReader(text, pieces, options);
  const found: Expression[] = [];
  let at = 0;
  let last = 0;
  while (at < pieces.length) {
    const node = readFrom(at);
    const next = at + (node?.next ?? 0);
    const isCutOff = next === pieces.length && text.length > longestText;
    if (node === undefined || node.steps === 0 || isCutOff || isTorn(pieces, at, next, last)) {
      at += 1;
    } else {
      found.push({ text: node.text, waits: node.waits, ...spanOf(pieces, at, next) });
      at = next;
      last = next;
    }
  }
  return found;
};

/** Tells whether a text is arithmetic from its first to its last character. */
export const isExpression = (text: string): boolean => {
  const [first] = readExpressions(text.slice(0, longestText), { units: true, percent: true });
  return first?.start === 0 && first.end === text.trimEnd().length;
};

/** Arithmetic is looked for in so many characters. */
const longestText = 1_000;

/** Pieces of one expression; this bounds how deep it nests. */
const longestExpression = 100;

const nodeReader = (
  text: string,
  pieces: readonly Piece[],
  { reference, ...options }: ExpressionOptions,
): ((at: number) => Node | undefined) => {
  const whether = asksWhether.test(withoutPoliteness(text));
  const opening = pieces.findIndex(({ type, text: word }) => type !== 'word' || !fillers.has(word));
  const value = reference !== undefined && quantity.test(reference) ? reference : undefined;
  return (at) =>
    readArithmetic({
      text,
      pieces: pieces.slice(at, at + longestExpression),
      options: { ...options, reference: value },
      whether,
      leads: at === opening,
    });
};

const asksWhether = /^(?:(?:check|tell me) )?(?:is|are|isn't|was|does|do|whether|if)\b/iu;

const quantity = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?: ?[\p{L}][\p{L}\d^/ ]{0,20})?$/iu;

const fillers = new Set('and now then what is also calculate compute please so'.split(' '));

const spanOf = (pieces: readonly Piece[], start: number, end: number): Span => ({
  start: pieces[start]?.start ?? 0,
  end: pieces[end - 1]?.end ?? 0,
});

/** Half of a formula must not be taken for the whole: `2 * 3` is not what `x + 2 * 3` asks. */
const isTorn = (pieces: readonly Piece[], start: number, end: number, last: number): boolean => {
  const typeAt = (at: number): string => pieces[at]?.type ?? 'word';
  const isInBracket = typeAt(start - 1) === 'open' && goesOn.has(typeAt(start - 2));
  const isBeforeBracket = typeAt(end) === 'close' && goesOn.has(typeAt(end + 1));
  return (
    leadsOn.has(typeAt(start - 1)) ||
    (goesOn.has(typeAt(end)) && typeAt(end) !== 'function') ||
    isInBracket ||
    isBeforeBracket ||
    isDecimalComma(pieces, start - 1) ||
    isDecimalComma(pieces, end) ||
    isLostNumber(pieces, start, last)
  );
};

const leadsOn = new Set(['operator', 'function', 'gather']);

const goesOn = new Set(['operator', 'function', 'suffix', 'percent', 'open']);

/** `3,5` may be one number or two. */
const isDecimalComma = (pieces: readonly Piece[], at: number): boolean => {
  const [left, comma, right] = pieces.slice(Math.max(0, at - 1), at + 2);
  return (
    comma?.type === 'comma' &&
    left?.type === 'number' &&
    right?.type === 'number' &&
    left.end === comma.start &&
    comma.end === right.start
  );
};

/** `2 thousand and 5 plus 1` */
const isLostNumber = (pieces: readonly Piece[], start: number, last: number): boolean => {
  const [number, joint] = pieces.slice(Math.max(0, start - 2), start);
  return start - last > 1 && number?.type === 'number' && joint?.text === 'and';
};
