// The rows of the diagram: the lanes of calls, with those of sub-agents below the tool calls that made them.
import type { CallLanes, Lane } from '../model/lanes.js';
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
  /** The position of the fork, for a line. */
  readonly forkedAt: number | undefined;
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

/** The rows of a run. They stay the same until its shape changes. */
export const rowsOf = (
  of: number,
  { lanes }: Run,
  collapsed: ReadonlySet<string>,
): readonly Row[] => (lanes.root === undefined ? [] : rowsOfCall(of, lanes.root, collapsed));

const rowsOfCall = (
  of: number,
  call: CallLanes,
  collapsed: ReadonlySet<string>,
): readonly Row[] => {
  const head: Row = { key: `${of} ${call.callId}`, of, call, lane: undefined };
  if (collapsed.has(call.callId)) return [head];
  const below = (children: readonly CallLanes[]): readonly Row[] =>
    children.flatMap((child) => rowsOfCall(of, child, collapsed));
  const ofNoTool = call.children.filter(
    ({ toolCallId }) => toolCallId === undefined || !call.tools.has(toolCallId),
  );
  const lanes = call.lanes.filter(isShown).flatMap((lane): readonly Row[] => {
    const row: Row = { key: `${of} ${lane.key}`, of, call, lane };
    const made =
      lane.kind === 'tool'
        ? call.children.filter(
            ({ toolCallId }) => toolCallId !== undefined && call.tools.get(toolCallId) === lane,
          )
        : [];
    return [row, ...below(made)];
  });
  return [head, ...lanes, ...below(ofNoTool)];
};

/** Steps that take no time, such as the load of an empty memory, have no row. */
const isShown = ({ kind, longest, bars }: Lane): boolean =>
  kind !== 'steps' || longest > 0 || bars.some(({ end }) => end === undefined);
