import { tap } from 'rxjs';
import type { Layer, Context } from '../../seams/layer.js';
import { trusted } from '../../seams/through.js';
import { toolScopeOf } from '../../seams/tool-context.js';
import { cell, toolResultOf } from '../../step.js';
import type { ToolContext } from '../../tools/types.js';
import type { Message } from '../../values/message.js';
import type { ToolRun } from '../../values/reply.js';
import { toToolRun } from '../../values/tool-output.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { callProgress } from '../../seams/progress.js';

/** The id of the step in which an agent made of steps makes its calls. */
export const stepsId = 'steps';

/** A call of a team: its tool calls by the id of their step, and those of its reply once it has one. */
interface Member {
  readonly agent: string;
  readonly ran: Map<string, ToolRun>;
  replied?: readonly ToolRun[];
  /** Its messages between input and reply: additions of users, words, and results of tools. */
  messages: readonly Message[];
}

/** The calls of each team of a family of calls, in the order of their start. */
const teams = cell('family', () => new Map<string, Map<string, Member>>());

/**
 * Keeps the tool calls of the members of a team, also of those that fail, lose a race or are unsubscribed. Tool calls below a tool call
 * are part of its result, as in any agent.
 */
export const memberRuns: Layer = trusted({
  name: 'memberRuns',
  priority: layerPlaces.memberRuns,
  inherit: true,
  call: (context) => (next) => (call) => {
    const { callId, parentId, agent } = context.info;
    if (parentId === undefined || context.info.parentStep !== stepsId) return next(call);
    const member: Member = { agent: agent.at(-1) ?? '', ran: new Map(), messages: [] };
    const all = context.local(teams);
    all.set(parentId, (all.get(parentId) ?? new Map<string, Member>()).set(callId, member));
    return next(call).pipe(
      tap((reply) => {
        member.replied = reply.toolCalls;
        member.messages = messagesBetween(context);
      }),
    );
  },
  step: (context) => (next) => (step) => {
    const { callId, parentId = '' } = context.info;
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

const messagesBetween = ({
  info: { callId },
  local,
}: Pick<Context, 'info' | 'local'>): readonly Message[] =>
  (local(callProgress).concluded?.messages ?? []).filter(
    ({ id }) => id.startsWith(`${callId}/`) && !isAsked.test(id.slice(callId.length)),
  );

/** Messages that steer a call have longer ids. */
const isAsked = /^\/input\/\d+$/;

/** The messages of the last call of a team, between its input and its reply. */
export const lastMessages = (parent: ToolContext | undefined): readonly Message[] => {
  if (parent === undefined) return [];
  const calls = toolScopeOf(parent).scope.context.local(teams).get(parent.callId);
  return [...(calls?.values() ?? [])].at(-1)?.messages ?? [];
};

/** The tool calls of all members of a team, in the order of the members and of their messages. Those of a replay have the same order. */
export const toolRunsBelow = ({
  info: call,
  local,
}: Pick<Context, 'info' | 'local'>): readonly ToolRun[] =>
  runsOf(call.callId, local(teams), local(callPlaces));

const runsOf = (
  callId: string,
  all: ReadonlyMap<string, ReadonlyMap<string, Member>>,
  places: ReadonlyMap<string, number>,
): readonly ToolRun[] =>
  startOrder([...(all.get(callId) ?? [])], places).flatMap(([memberId, { agent, ran, replied }]) =>
    (replied ?? [...inOrder(ran), ...runsOf(memberId, all, places)]).map((run) => ({
      agent,
      ...run,
    })),
  );

/** The places of calls that have ids of their own. */
const callPlaces = cell('family', () => new Map<string, number>());

/** For a step that makes its calls by name, in an order that may differ each time: the order of their tool calls in `reply.toolCalls`. */
export const callsInOrder = (parent: ToolContext, callIds: Iterable<string>): void => {
  const places = toolScopeOf(parent).scope.context.local(callPlaces);
  for (const id of callIds) if (!places.has(id)) places.set(id, places.size);
};

/** Steps that run side by side call others in any order; ids that the calls assign, and places, do not depend on it. */
const startOrder = <Entry extends readonly [callId: string, Member]>(
  members: readonly Entry[],
  places: ReadonlyMap<string, number>,
): readonly Entry[] => {
  const placeOf = ([id]: Entry): number => places.get(id) ?? places.size;
  return members.every(([id]) => isAssigned.test(id))
    ? members.toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    : members.toSorted((a, b) => placeOf(a) - placeOf(b));
};

const isAssigned = /\/step[\d+.]*$/;

/** Parallel tool calls end in any order; their ids are `iteration/index`. */
const inOrder = (ran: ReadonlyMap<string, ToolRun>): readonly ToolRun[] =>
  [...ran].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })).map(([, run]) => run);
