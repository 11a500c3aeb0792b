import { type AgentEvent, toolCallsOf } from '@millrace/core';

/** What a marble stands for. `begin` has no sign of its own: it opens a stretch of work. */
export type MarkKind =
  'begin' | 'text' | 'thought' | 'call' | 'progress' | 'result' | 'error' | 'interrupted' | 'end';

/** Something that happened in a lane: a phase of an agent, or a tool. */
export interface Mark {
  readonly lane: string;
  readonly kind: MarkKind;
  /** Milliseconds since the epoch, as the event has it. */
  readonly at: number;
}

/** What has been heard so far. */
interface Heard {
  /** The lanes at work: how many pieces of work each has, and for which call. */
  readonly busy: Map<string, { readonly callId: string; readonly count: number }>;
  /** Tool uses that a mark has announced. */
  readonly announced: Set<string>;
}

/** Reads the marks of a picture off the events of a call, in their order. */
export const marksOf = (events: readonly AgentEvent[]): readonly Mark[] => {
  const heard: Heard = { busy: new Map(), announced: new Set() };
  return events.flatMap((event) =>
    kindsIn(event, heard).map(([lane, kind]) => ({ lane, kind, at: event.at })),
  );
};

type LaneKind = readonly [lane: string, kind: MarkKind];

const kindsIn = (event: AgentEvent, heard: Heard): readonly LaneKind[] => {
  switch (event.type) {
    case 'preReasoning':
      return begin(laneOf(event, 'reasoning'), event, heard);
    case 'preSummary':
      return begin(laneOf(event, 'summary'), event, heard);
    case 'prePlanning':
      return begin(laneOf(event, event.phase), event, heard);
    case 'reasoningChunk':
      return chunk(laneOf(event, 'reasoning'), event, heard);
    case 'summaryChunk':
      return chunk(laneOf(event, 'summary'), event, heard);
    case 'postReasoning': {
      const lane = laneOf(event, 'reasoning');
      const calls = toolCallsOf(event.message).flatMap(({ id }) =>
        announce(lane, id, event, heard),
      );
      return [...calls, ...finish(lane, heard)];
    }
    case 'planningChunk':
      return [[laneOf(event, event.phase), 'thought']];
    case 'postPlanning':
      return finish(laneOf(event, event.phase), heard);
    case 'postSummary':
      return finish(laneOf(event, 'summary'), heard);
    case 'preActing':
      return begin(laneOf(event, event.toolCall.name), event, heard);
    case 'actingChunk':
      return [[laneOf(event, event.toolCall.name), 'progress']];
    case 'postActing': {
      const lane = laneOf(event, event.toolCall.name);
      return [[lane, event.result.isError ? 'error' : 'result'], ...finish(lane, heard)];
    }
    case 'modelRetry':
    case 'modelFallback':
      return busyLanes(event, heard).map((lane) => [lane, 'error']);
    case 'postCall':
      return event.reply.reason === 'interrupted'
        ? somewhere(event, 'interrupted', cut(event, heard, 'interrupted'))
        : cut(event, heard, 'end');
    case 'error':
      return somewhere(event, 'error', cut(event, heard, 'error', 'end'));
    default:
      return [];
  }
};

const laneOf = ({ agent }: AgentEvent, name: string): string => [...agent.slice(1), name].join('/');

const begin = (lane: string, { callId }: AgentEvent, { busy }: Heard): readonly LaneKind[] => {
  const count = busy.get(lane)?.count ?? 0;
  busy.set(lane, { callId, count: count + 1 });
  return count === 0 ? [[lane, 'begin']] : [];
};

/** A lane in which the same tool runs several times at once ends with the last of them. */
const finish = (lane: string, { busy }: Heard): readonly LaneKind[] => {
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
  heard: Heard,
): readonly LaneKind[] => {
  if (event.toolCall !== undefined) return announce(lane, event.toolCall.id, event, heard);
  return [[lane, event.kind === 'thinking' ? 'thought' : 'text']];
};

const announce = (
  lane: string,
  toolCallId: string,
  { callId }: AgentEvent,
  { announced }: Heard,
): readonly LaneKind[] => {
  const key = `${callId} ${toolCallId}`;
  if (announced.has(key)) return [];
  announced.add(key);
  return [[lane, 'call']];
};

const busyLanes = ({ callId }: AgentEvent, { busy }: Heard): readonly string[] =>
  [...busy].filter(([, work]) => work.callId === callId).map(([lane]) => lane);

/** Ends whatever a call still has at work. */
const cut = (event: AgentEvent, heard: Heard, ...kinds: readonly MarkKind[]): readonly LaneKind[] =>
  busyLanes(event, heard).flatMap((lane) => {
    heard.busy.delete(lane);
    return kinds.map((kind): LaneKind => [lane, kind]);
  });

/** Where nothing was at work, what ended the call is seen in its reasoning. */
const somewhere = (
  event: AgentEvent,
  kind: MarkKind,
  marks: readonly LaneKind[],
): readonly LaneKind[] => (marks.length > 0 ? marks : [[laneOf(event, 'reasoning'), kind]]);
