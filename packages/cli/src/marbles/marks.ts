import { type AgentEvent, toolCallsOf } from 'millrace';
import { printableName } from '../presentation/printable.js';

/** The meaning of a marble. `begin` has no sign: it starts a span of work. */
export type MarkKind =
  'begin' | 'text' | 'thought' | 'call' | 'progress' | 'result' | 'error' | 'interrupted' | 'end';

/** Something that happened in a lane: a phase of an agent, or a tool. */
export interface Mark {
  readonly lane: string;
  readonly kind: MarkKind;
  /** The time of the event, in milliseconds since the epoch. */
  readonly at: number;
}

interface LaneState {
  /** The busy lanes, with their call and the number of operations in progress. */
  readonly busy: Map<string, { readonly callId: string; readonly count: number }>;
  /** Tool calls that already have a mark. */
  readonly announced: Set<string>;
}

/** Converts the events of a call to marks, in order. */
export const marksOf = (events: readonly AgentEvent[]): readonly Mark[] => {
  const state: LaneState = { busy: new Map(), announced: new Set() };
  return events.flatMap((event) =>
    kindsIn(event, state).map(([lane, kind]) => ({ lane, kind, at: event.at })),
  );
};

type LaneKind = readonly [lane: string, kind: MarkKind];

const kindsIn = (event: AgentEvent, state: LaneState): readonly LaneKind[] => {
  switch (event.type) {
    case 'preReasoning':
      return begin(laneOf(event, 'reasoning'), event, state);
    case 'preSummary':
      return begin(laneOf(event, 'summary'), event, state);
    case 'prePlanning':
      return begin(laneOf(event, event.phase), event, state);
    case 'reasoningChunk':
      return chunk(laneOf(event, 'reasoning'), event, state);
    case 'summaryChunk':
      return chunk(laneOf(event, 'summary'), event, state);
    case 'postReasoning': {
      const lane = laneOf(event, 'reasoning');
      const calls = toolCallsOf(event.message).flatMap(({ id }) =>
        announce(lane, id, event, state),
      );
      return [...calls, ...finish(lane, state)];
    }
    case 'planningChunk':
      return [[laneOf(event, event.phase), 'thought']];
    case 'postPlanning':
      return finish(laneOf(event, event.phase), state);
    case 'postSummary':
      return finish(laneOf(event, 'summary'), state);
    case 'preActing':
      return begin(laneOf(event, event.toolCall.name), event, state);
    case 'actingChunk':
      return [[laneOf(event, event.toolCall.name), 'progress']];
    case 'postActing': {
      const lane = laneOf(event, event.toolCall.name);
      return [[lane, event.result.isError ? 'error' : 'result'], ...finish(lane, state)];
    }
    case 'modelRetry':
    case 'modelFallback':
      return busyLanes(event, state).map((lane) => [lane, 'error']);
    case 'postCall':
      return event.reply.reason === 'interrupted'
        ? somewhere(event, 'interrupted', cut(event, state, 'interrupted'))
        : cut(event, state, 'end');
    case 'error':
      return somewhere(event, 'error', cut(event, state, 'error', 'end'));
    default:
      return [];
  }
};

const laneOf = ({ agent }: AgentEvent, name: string): string =>
  printableName([...agent.slice(1), name].join('/'));

const begin = (lane: string, { callId }: AgentEvent, { busy }: LaneState): readonly LaneKind[] => {
  const count = busy.get(lane)?.count ?? 0;
  busy.set(lane, { callId, count: count + 1 });
  return count === 0 ? [[lane, 'begin']] : [];
};

/** A lane with parallel runs of the same tool ends with the last one. */
const finish = (lane: string, { busy }: LaneState): readonly LaneKind[] => {
  const work = busy.get(lane);
  if (work !== undefined && work.count > 1) {
    busy.set(lane, { ...work, count: work.count - 1 });
    return [];
  }
  busy.delete(lane);
  return [[lane, 'end']];
};

const chunk = (
  lane: string,
  event: Extract<AgentEvent, { type: 'reasoningChunk' | 'summaryChunk' }>,
  state: LaneState,
): readonly LaneKind[] => {
  if (event.toolCall !== undefined) return announce(lane, event.toolCall.id, event, state);
  return [[lane, event.kind === 'thinking' ? 'thought' : 'text']];
};

const announce = (
  lane: string,
  toolCallId: string,
  { callId }: AgentEvent,
  { announced }: LaneState,
): readonly LaneKind[] => {
  const key = `${callId} ${toolCallId}`;
  if (announced.has(key)) return [];
  announced.add(key);
  return [[lane, 'call']];
};

const busyLanes = ({ callId }: AgentEvent, { busy }: LaneState): readonly string[] =>
  [...busy].filter(([, work]) => work.callId === callId).map(([lane]) => lane);

/** Ends the busy lanes of a call. */
const cut = (
  event: AgentEvent,
  state: LaneState,
  ...kinds: readonly MarkKind[]
): readonly LaneKind[] =>
  busyLanes(event, state).flatMap((lane) => {
    state.busy.delete(lane);
    return kinds.map((kind): LaneKind => [lane, kind]);
  });

/** If no lane was busy, the mark is drawn in the reasoning lane. */
const somewhere = (
  event: AgentEvent,
  kind: MarkKind,
  marks: readonly LaneKind[],
): readonly LaneKind[] => (marks.length > 0 ? marks : [[laneOf(event, 'reasoning'), kind]]);
