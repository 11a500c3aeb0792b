import { readNumberWords } from './number-words.js';
import { functions, longestPhrase, phrases, type PieceType, signs } from './phrases.js';
import { unitOf } from './units.js';
import type { Span } from '../words.js';

/** One word or sign of a text, and how an expression writes it. */
export interface Piece extends Span {
  readonly type: PieceType;
  readonly text: string;
}

/** Reads a text as pieces of arithmetic: `two times √9` gives a number, an operator, a function, a number. */
export const arithmeticPieces = (text: string): readonly Piece[] => {
  const lexemes = lexemesOf(text);
  const pieces: Piece[] = [];
  let at = 0;
  while (at < lexemes.length) {
    const { type, text: written, length = 1 } = meaningAt(lexemes, at);
    const [first, last] = [lexemes[at], lexemes[at + length - 1]];
    if (type !== 'nothing' && first !== undefined && last !== undefined) {
      pieces.push({ type, text: written, start: first.start, end: last.end });
    }
    at += length;
  }
  return pieces;
};

interface Lexeme extends Span {
  readonly text: string;
  readonly sort: string;
}

const lexeme =
  /(?<date>\d{1,9}(?:\.\d{1,9}){2,9}|\d{1,4}[/.]\d{1,2}[/.]\d{2,4}\b|\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\b24\/7\b)|(?<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d+\b)?|\.\d+)|(?<times>(?<=[\d)]\s?)[xX](?=\s?[\d(.]))|(?<call>[A-Za-z]\w*(?=\())|(?<code>\p{L}+-?\d[\p{L}\p{N}]*|\p{L}+(?:-\p{L}+)+(?<!ty-\p{L}+))|(?<word>[\p{L}°]\p{L}*(?:['’]\p{L}+)?)|(?<sign>\*\*|<=|>=|==|[-+−–*×·/÷^!%(),<>=√²³])|(?<money>[$€£])|(?<rest>\S)/gu;

const lexemesOf = (text: string): readonly Lexeme[] =>
  [...text.matchAll(lexeme)].map(({ 0: matched, index, groups = {} }) => ({
    text: matched,
    start: index,
    end: index + matched.length,
    sort: Object.keys(groups).find((key) => groups[key] !== undefined) ?? 'rest',
  }));

/** What one lexeme or several in a row mean. */
interface Meaning {
  readonly type: PieceType | 'nothing';
  readonly text: string;
  readonly length?: number;
}

const nothing: Meaning = { type: 'nothing', text: '' };

const meaningAt = (lexemes: readonly Lexeme[], at: number): Meaning => {
  const { sort, text } = lexemes[at] ?? { sort: 'rest', text: '' };
  switch (sort) {
    case 'number':
      return numberMeaning(lexemes, at, text.replaceAll(',', ''), 1);
    case 'times':
      return { type: 'operator', text: '*' };
    case 'sign':
      return isRange(lexemes, at) ? { type: 'other', text } : signMeaning(text);
    case 'money':
      return nothing;
    case 'call':
      return functions.has(text) ? { type: 'function', text } : wordMeaning(lexemes, at, text);
    case 'word':
      return wordMeaning(lexemes, at, text);
    default:
      return { type: 'other', text };
  }
};

const signMeaning = (sign: string): Meaning => {
  const [type, text] = signs.get(sign) ?? ['other', sign];
  return { type, text };
};

const wordMeaning = (lexemes: readonly Lexeme[], at: number, text: string): Meaning => {
  const words = wordsFrom(lexemes, at);
  for (let length = Math.min(words.length, longestPhrase); length > 0; length -= 1) {
    const [type, written] = phrases.get(words.slice(0, length).join(' ')) ?? [];
    if (type !== undefined && written !== undefined) return { type, text: written, length };
  }
  const word = text.toLowerCase();
  if (articles.has(word)) return articleMeaning(word, words[1]);
  const number = readNumberWords(lexemes.slice(at, at + 12).map((it) => it.text.toLowerCase()));
  if (number !== undefined) return numberMeaning(lexemes, at, number.text, number.length);
  const unit = unitOf(text);
  return unit === undefined ? { type: 'word', text: word } : { type: 'unit', text: unit };
};

/** The words in lower case from a lexeme to the next that is none. */
const wordsFrom = (lexemes: readonly Lexeme[], at: number): readonly string[] => {
  const row = lexemes.slice(at, at + longestPhrase);
  const end = row.findIndex(({ sort }) => sort !== 'word' && sort !== 'call');
  return row.slice(0, end < 0 ? row.length : end).map(({ text }) => text.toLowerCase());
};

const articles = new Set(['the', 'a', 'an']);

/** `a mile` is one mile; any other article says nothing. */
const articleMeaning = (article: string, next = ''): Meaning =>
  article !== 'the' && next.length > 1 && unitOf(next) !== undefined
    ? { type: 'number', text: '1' }
    : nothing;

/** `2 thousand` is one number, and so is `two and a half`. */
const numberMeaning = (
  lexemes: readonly Lexeme[],
  at: number,
  digits: string,
  length: number,
): Meaning => {
  const [first = '', second, third] = wordsFrom(lexemes, at + length);
  const scale = scales.get(first);
  if (scale !== undefined) {
    return { type: 'number', text: String(Number(digits) * scale), length: length + 1 };
  }
  return first === 'and' && second === 'a' && third === 'half'
    ? { type: 'number', text: String(Number(digits) + 0.5), length: length + 3 }
    : { type: 'number', text: digits, length };
};

const scales = new Map([
  ['hundred', 1e2],
  ['thousand', 1e3],
  ['million', 1e6],
  ['billion', 1e9],
]);

/** `3-5` in a sentence counts from three to five; `5-3`, `3 - 5`, and a question for nothing else, subtract. */
const isRange = (lexemes: readonly Lexeme[], at: number): boolean => {
  const [left, dash, right] = lexemes.slice(Math.max(0, at - 1), at + 2);
  if (left?.sort !== 'number' || right?.sort !== 'number' || dash === undefined) return false;
  const isTight = left.end === dash.start && dash.end === right.start;
  const isDash = isTight && /^[-–]$/u.test(dash.text) && Number(left.text) < Number(right.text);
  return isDash && !isAlone(lexemes, at - 1, at + 2);
};

const isAlone = (lexemes: readonly Lexeme[], start: number, end: number): boolean =>
  lexemes
    .slice(0, start)
    .every(({ text }) => /^(?:what|is|what's|calculate|compute)$/iu.test(text)) &&
  lexemes.slice(end).every(({ sort }) => sort === 'rest');
