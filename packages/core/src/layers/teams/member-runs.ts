import { tap } from 'rxjs';
import { type Layer, type LayerContext, trusted } from '../../seams/layer.js';
import { cell, toolResultOf } from '../../step.js';
import type { ToolRun } from '../../values/reply.js';
import { toToolRun } from '../../values/tool-output.js';

/** The id of the step in which an agent made of steps makes its calls. */
export const stepsId = 'steps';

/** A call of a team: its tool calls by the id of their step, and those of its reply once it has one. */
interface Member {
  readonly agent: string;
  readonly ran: Map<string, ToolRun>;
  replied?: readonly ToolRun[];
}

/** The calls of each team of a family of calls, in the order of their start. */
const teams = cell('family', () => new Map<string, Map<string, Member>>());

/**
 * Keeps the tool calls of the members of a team, also of those that fail, lose a race or are unsubscribed. Tool calls below a tool call
 * are part of its result, as in any agent.
 */
export const memberRuns: Layer = trusted({
  name: 'memberRuns',
  // Outside of layers that answer or cut a step.
  priority: 1,
  inherit: true,
  call: (context) => (next) => (call) => {
    const { callId, parentId, agent } = context.call;
    if (parentId === undefined || context.parentStep !== stepsId) return next(call);
    const member: Member = { agent: agent.at(-1) ?? '', ran: new Map() };
    const all = context.local(teams);
    all.set(parentId, (all.get(parentId) ?? new Map<string, Member>()).set(callId, member));
    return next(call).pipe(tap(({ toolCalls }) => (member.replied = toolCalls)));
  },
  step: (context) => (next) => (step) => {
    const { callId, parentId = '' } = context.call;
    const member = context.local(teams).get(parentId)?.get(callId);
    if (step.kind !== 'tool' || member === undefined) return next(step);
    return next(step).pipe(
      tap((value) => {
        const ran = toolResultOf(step, value);
        if (ran !== undefined) member.ran.set(step.id, toToolRun({ ms: 0, ...ran }));
      }),
    );
  },
});

/** The tool calls of all members of a team, in the order of the members and of their messages. Those of a replay have the same order. */
export const toolRunsBelow = ({
  call,
  local,
}: Pick<LayerContext, 'call' | 'local'>): readonly ToolRun[] => runsOf(call.callId, local(teams));

const runsOf = (
  callId: string,
  all: ReadonlyMap<string, ReadonlyMap<string, Member>>,
): readonly ToolRun[] =>
  startOrder([...(all.get(callId) ?? [])]).flatMap(([memberId, { agent, ran, replied }]) =>
    (replied ?? [...inOrder(ran), ...runsOf(memberId, all)]).map((run) => ({ agent, ...run })),
  );

/** Steps that run side by side call others in any order; ids that the calls assign do not depend on it. */
const startOrder = <Entry extends readonly [callId: string, Member]>(
  members: readonly Entry[],
): readonly Entry[] =>
  members.every(([id]) => isAssigned.test(id))
    ? members.toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    : members;

const isAssigned = /\/step[\d+.]*$/;

/** Parallel tool calls end in any order; their ids are `iteration/index`. */
const inOrder = (ran: ReadonlyMap<string, ToolRun>): readonly ToolRun[] =>
  [...ran].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })).map(([, run]) => run);
