// What the diagram on the home page shows: a recorded call, cut and resumed.

/** Whether work of a lane begins before a column and has not ended there. */
const inFlight = (cells, column) =>
  column > 0 && /[^·|]/.test(cells[column - 1]) && !/[r|]/.test(cells[column - 1]);

/** The column where the work that runs at a column began. */
const beginOf = (cells, column) => {
  const before = cells.slice(0, column);
  return before.length - /[^·|r]*$/.exec(before)[0].length;
};

/** The steps that a journal holds at a column: each message that is complete, and each result. */
export const stepsAt = (lanes, column) =>
  lanes.reduce(
    (sum, { name, cells }) =>
      sum + (cells.slice(0, column).match(name === 'reasoning' ? /\|/g : /r/g)?.length ?? 0),
    0,
  );

/** The lanes that work at a column. */
export const runningAt = (lanes, column) =>
  lanes.filter(({ cells }) => inFlight(cells, column)).map(({ name }) => name);

/** The call after it was left at a column and resumed: what was not complete there starts over, and nothing else runs again. */
export function resumedAt(lanes, column) {
  const running = lanes.filter(({ cells }) => inFlight(cells, column));
  const begin = Math.min(column, ...running.map(({ cells }) => beginOf(cells, column)));
  return lanes.map(({ name, cells }) => ({
    name,
    cells: inFlight(cells, column)
      ? `${cells.slice(0, column - 1)}!${cells.slice(begin)}`
      : `${cells.slice(0, column)}${'·'.repeat(column - begin)}${cells.slice(column)}`,
  }));
}
