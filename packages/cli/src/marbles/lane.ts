import type { PlacedMark } from './layout.js';
import type { MarkKind } from './marks.js';
import type { Colors } from '../presentation/theme.js';

/** The content of a cell: a mark, work between marks, or rest. */
export type Sign = Exclude<MarkKind, 'begin'> | 'work' | 'rest';

/** The character of each sign. */
export type Alphabet = Readonly<Record<Sign, string>>;

export const unicodeAlphabet: Alphabet = {
  thought: 'h',
  text: 't',
  call: 'c',
  progress: 'p',
  result: 'r',
  error: '✗',
  interrupted: '!',
  end: '|',
  work: '─',
  rest: '·',
};

/** For a terminal without Unicode. */
export const asciiAlphabet: Alphabet = { ...unicodeAlphabet, error: 'x', work: '-', rest: '.' };

/** Lays the marks of one lane out in `columns` cells. */
export const cellsOf = (marks: readonly PlacedMark[], columns: number): readonly Sign[] => {
  const cells = new Array<Sign>(columns).fill('rest');
  for (const [from, to] of stretchesOf(marks)) cells.fill('work', from, to);
  for (const { kind, column } of marks.toSorted((a, b) => rank(a) - rank(b))) {
    if (kind !== 'begin') cells[column] = kind;
  }
  return cells;
};

export const writeCells = (cells: readonly Sign[], alphabet: Alphabet, colors: Colors): string =>
  runsOf(cells)
    .map((run) => paint(run, alphabet, colors))
    .join('');

/** The spans of work in a lane. Work without an end lasts to the edge. */
const stretchesOf = (
  marks: readonly PlacedMark[],
): readonly (readonly [from: number, to: number | undefined])[] => {
  const begins = marks.filter(({ kind }) => kind === 'begin');
  const ends = marks.filter(({ kind }) => kind === 'end' || kind === 'interrupted');
  return begins.map(({ column }, index) => [column, ends[index]?.column]);
};

/** If marks share a column, the last of these is drawn. */
const ranking: readonly MarkKind[] = [
  'begin',
  'thought',
  'text',
  'progress',
  'end',
  'result',
  'call',
  'interrupted',
  'error',
];

const rank = ({ kind }: PlacedMark): number => ranking.indexOf(kind);

/** Groups equal neighbours, to change the colour once. */
const runsOf = (cells: readonly Sign[]): readonly (readonly Sign[])[] => {
  const runs: Sign[][] = [];
  for (const cell of cells) {
    const last = runs.at(-1);
    if (last?.[0] === cell) last.push(cell);
    else runs.push([cell]);
  }
  return runs;
};

const paint = (
  [sign = 'rest', ...same]: readonly Sign[],
  alphabet: Alphabet,
  colors: Colors,
): string => {
  const text = alphabet[sign].repeat(same.length + 1);
  switch (sign) {
    case 'call':
      return colors.cyan(text);
    case 'result':
      return colors.green(text);
    case 'error':
      return colors.red(text);
    case 'interrupted':
      return colors.yellow(text);
    case 'text':
    case 'progress':
      return text;
    case 'thought':
    case 'end':
    case 'work':
    case 'rest':
      return colors.dim(text);
  }
};
