// The rows of the diagram: the lanes of calls, with those of sub-agents below the tool calls that made them.
import type { CallLanes, Lane } from '../model/call-lanes.js';
import type { Run } from '../model/run.js';
import type { Axis } from '../model/axis.js';

/** A run of the diagram. Two runs share the axis. */
export interface DiagramRun {
  readonly id: string;
  readonly run: Run;
  readonly axis: Axis;
  /** Shown before its name, if there are two. */
  readonly title: string | undefined;
  readonly position: number | undefined;
  /** The time of the fork, for a line. */
  readonly forkedAt: number | undefined;
  /** How many entries are those of its original, if it is a fork. */
  readonly keptUntil: number;
  /** The position of the first step that differs from the other run. */
  readonly differsAt: number | undefined;
}

export interface Row {
  readonly key: string;
  /** The index of its run. */
  readonly of: number;
  readonly call: CallLanes;
  /** The lane; the call itself without one. */
  readonly lane: Lane | undefined;
}

export const rowHeight = 26;

/** The times that are shown. */
export interface Shown {
  readonly from: number;
  readonly to: number;
}

/** With more tool calls, or sub-agents, only those of the shown time have rows. */
const maxQuiet = 10;

/** The rows of a run. */
export const rowsOf = (
  of: number,
  { lanes }: Run,
  collapsed: ReadonlySet<string>,
  shown: Shown,
): readonly Row[] =>
  lanes.root === undefined ? [] : rowsOfCall({ of, collapsed, shown }, lanes.root);

interface Listing {
  readonly of: number;
  readonly collapsed: ReadonlySet<string>;
  readonly shown: Shown;
}

const rowsOfCall = (listing: Listing, call: CallLanes): readonly Row[] => {
  const { of, collapsed, shown } = listing;
  const head: Row = { key: `${of} ${call.callId}`, of, call, lane: undefined };
  if (collapsed.has(call.callId)) return [head];
  const isSmall = call.tools.size + call.children.length <= maxQuiet;
  const children = call.children.filter(
    ({ start, end }) => isSmall || (start <= shown.to && (end ?? Infinity) >= shown.from),
  );
  const below = (made: readonly CallLanes[]): readonly Row[] =>
    made.flatMap((child) => rowsOfCall(listing, child));
  const madeBy = (lane: Lane | undefined): readonly CallLanes[] =>
    children.filter(
      ({ toolCallId }) =>
        (toolCallId === undefined ? undefined : call.tools.get(toolCallId)) === lane,
    );
  const lanes = call.lanes
    .filter((lane) => isShown(lane, isSmall, shown))
    .flatMap((lane): readonly Row[] => [
      { key: `${of} ${lane.key}`, of, call, lane },
      ...(lane.kind === 'tool' && children.length > 0 ? below(madeBy(lane)) : []),
    ]);
  return [head, ...lanes, ...below(madeBy(undefined))];
};

/** Steps that take no time, such as the load of an empty memory, have no row. */
const isShown = (lane: Lane, isSmall: boolean, { from, to }: Shown): boolean => {
  const { kind, longest, openBars, firstAt, lastAt } = lane;
  if (kind === 'steps') return longest > 0 || openBars > 0;
  return kind !== 'tool' || isSmall || (firstAt <= to && (lastAt >= from || openBars > 0));
};
