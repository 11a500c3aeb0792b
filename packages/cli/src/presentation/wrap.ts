import {
  catchError,
  concat,
  defer,
  filter,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
} from 'rxjs';
import { columnsOf, isWide, piecesOf } from './columns.js';
import type { Theme } from './theme.js';

/** The line that is being written. */
interface Line {
  /** The columns that are written. */
  readonly column: number;
  readonly indent: string;
  /** The spaces after what is written. They are dropped if the line breaks there. */
  readonly gap: string;
  /** The word at the end, which may not be complete. */
  readonly word: string;
  /** Whether the line stays as it is: code, and tables of Markdown. */
  readonly isKept: boolean;
  readonly isCode: boolean;
}

const start: Line = { column: 0, indent: '', gap: '', word: '', isKept: false, isCode: false };

type Step = readonly [text: string, line: Line];

/** Wraps text between words. Code, Markdown tables and words that are wider than a line stay as they are. */
export const wrapText = (text: string, width: number): string => {
  const [wrapped, line] = add(start, text, width);
  return wrapped + rest(line, width);
};

/** The same for a theme. Text that is not for a terminal stays as it is. */
export const wrapFor = (text: string, { width, isTerminal = false }: Theme): string =>
  isTerminal ? wrapText(text, width) : text;

/**
 * Wraps text that arrives in pieces, as `wrapText` does. Emits each word when it is complete, and the last one at the
 * end: on completion, and before an error.
 */
export const wrapLines =
  (width: number): MonoTypeOperatorFunction<string> =>
  (text$) =>
    defer(() => {
      let line = start;
      const last$ = defer(() => of(rest(line, width)));
      return concat(
        text$.pipe(
          map((text) => {
            const [wrapped, next] = add(line, text, width);
            line = next;
            return wrapped;
          }),
          catchError((error: unknown) => concat(last$, failing(error))),
        ),
        last$,
      ).pipe(filter((text) => text !== ''));
    });

const failing = (error: unknown): Observable<never> =>
  defer(() => {
    throw error;
  });

/** The word and the spaces that are not written yet. */
const rest = (line: Line, width: number): string => {
  const [text, { gap }] = settle(line, width);
  return text + gap;
};

const add = (line: Line, text: string, width: number): Step =>
  piecesOf(text).reduce<Step>(
    ([before, current], part) => {
      const [more, next] = addPart(current, part, width);
      return [before + more, next];
    },
    ['', line],
  );

const addPart = (line: Line, part: string, width: number): Step => {
  if (part === '\n') {
    const { isCode } = settle(line, width)[1];
    return [`${rest(line, width)}\n`, { ...start, isCode, isKept: isCode }];
  }
  if (part.trim() === '') return addSpace(settle(line, width), part);
  if (!isWide(part)) return ['', { ...line, word: line.word + part }];
  const [text, settled] = settle(line, width);
  const [more, next] = settle({ ...settled, word: part }, width);
  return [text + more, next];
};

const addSpace = ([text, line]: Step, space: string): Step =>
  line.column === line.indent.length
    ? [text + space, { ...line, indent: line.indent + space, column: line.column + space.length }]
    : [text, { ...line, gap: line.gap + space }];

/** Writes the word at the end, on the next line if it does not fit. */
const settle = (line: Line, width: number): Step => {
  const { column, indent, gap, word } = line;
  if (word === '') return ['', line];
  const columns = columnsOf(word);
  const isFirst = column === indent.length;
  const isFence = isFirst && indent.length < 4 && word.startsWith('```');
  const isCode = line.isCode !== isFence;
  const isKept = line.isKept || isFence || (isFirst && word.startsWith('|'));
  const isBroken = !isKept && !isFirst && column + gap.length + columns > width;
  const next = { ...line, gap: '', word: '', isCode, isKept };
  return isBroken
    ? [`\n${indent}${word}`, { ...next, column: indent.length + columns }]
    : [`${gap}${word}`, { ...next, column: column + gap.length + columns }];
};
