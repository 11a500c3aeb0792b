import type { Mark, MarkKind } from './marks.js';

/** A mark, and the column that it is drawn in. */
export interface PlacedMark extends Mark {
  readonly column: number;
}

/**
 * Gives each mark a column, by its time as far as there is room: no mark of a lane covers another, and what
 * came later is never left of what came before. Like marks that fall together are one.
 *
 * Where a run has more marks than that leaves room for, each has the column of its time, and some share one.
 */
export const placeMarks = (marks: readonly Mark[], columns: number): readonly PlacedMark[] => {
  const start = marks[0]?.at ?? 0;
  const total = Math.max((marks.at(-1)?.at ?? 0) - start, 1);
  const timed = (timely: readonly Mark[], span: number): readonly PlacedMark[] =>
    timely.map((mark) => ({ ...mark, column: Math.round(((mark.at - start) / total) * span) }));
  const told = withoutCrowds(timed(marks, columns - 1));
  for (let span = columns - 1; span >= columns / 2; span -= 1) {
    const spread = spreadOut(timed(told, span));
    if (spread.every(({ column }) => column < columns)) return spread;
  }
  return told;
};

/** Marks that come in crowds, and say no more for it. */
const crowds: ReadonlySet<MarkKind> = new Set(['text', 'thought', 'progress']);

const isRepeated = (mark: PlacedMark, last: PlacedMark | undefined): boolean =>
  last?.kind === mark.kind && crowds.has(mark.kind) && mark.column <= last.column;

const withoutCrowds = (timed: readonly PlacedMark[]): readonly PlacedMark[] => {
  const lastOf = new Map<string, PlacedMark>();
  return timed.filter((mark) => {
    const repeated = isRepeated(mark, lastOf.get(mark.lane));
    lastOf.set(mark.lane, mark);
    return !repeated;
  });
};

const spreadOut = (timed: readonly PlacedMark[]): readonly PlacedMark[] => {
  const lastOf = new Map<string, PlacedMark>();
  const placed: PlacedMark[] = [];
  let reached = 0;
  for (const mark of timed) {
    const last = lastOf.get(mark.lane);
    if (isRepeated(mark, last)) continue;
    const free = last === undefined ? 0 : last.column + (last.kind === 'begin' ? 0 : 1);
    const put = { ...mark, column: Math.max(mark.column, reached, free) };
    // An end is drawn behind the last mark of its lane, and pushes nothing in the others.
    if (mark.kind !== 'end') reached = put.column;
    lastOf.set(mark.lane, put);
    placed.push(put);
  }
  return placed;
};
