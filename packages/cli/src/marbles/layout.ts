import type { Mark, MarkKind } from './marks.js';

export interface PlacedMark extends Mark {
  readonly column: number;
}

/**
 * Assigns each mark a column by its time, and moves marks apart while there is room: no mark of a lane covers another,
 * and a later mark is never left of an earlier one. Merges equal marks in the same column.
 *
 * If there are too many marks, each one gets the column of its time, and some share a column.
 */
export const placeMarks = (marks: readonly Mark[], columns: number): readonly PlacedMark[] => {
  const start = marks[0]?.at ?? 0;
  const total = Math.max((marks.at(-1)?.at ?? 0) - start, 1);
  const timed = (timely: readonly Mark[], span: number): readonly PlacedMark[] =>
    timely.map((mark) => ({ ...mark, column: Math.round(((mark.at - start) / total) * span) }));
  const merged = withoutCrowds(timed(marks, columns - 1));
  for (let span = columns - 1; span >= columns / 2; span -= 1) {
    const spread = spreadOut(timed(merged, span));
    if (spread.every(({ column }) => column < columns)) return spread;
  }
  return merged;
};

/** Frequent marks that are merged if they share a column. */
const mergeable: ReadonlySet<MarkKind> = new Set(['text', 'thought', 'progress']);

const isRepeated = (mark: PlacedMark, last: PlacedMark | undefined): boolean =>
  last?.kind === mark.kind && mergeable.has(mark.kind) && mark.column <= last.column;

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
    // An end follows the last mark of its lane, and does not move marks in other lanes.
    if (mark.kind !== 'end') reached = put.column;
    lastOf.set(mark.lane, put);
    placed.push(put);
  }
  return placed;
};
