// The lanes of a run: what the marble diagram draws. Each entry of the log is looked at once.
import type { Mark, ShownEvent } from '../protocol.js';
import type { ChunkStream, Fold } from './log.js';
import {
  addTokens,
  anyFields,
  errorIn,
  noTokens,
  stringOf,
  toolCallIn,
  toolCallsIn,
  type Tokens,
  tokensIn,
} from './read-event.js';

export type LaneKind = 'steps' | 'model' | 'tool' | 'interceptors' | 'demand' | 'holds' | 'events';

/** How a bar ended. `unsubscribed`: its consumer left. `open`: it runs. */
export type BarEnd = 'open' | 'complete' | 'error' | 'unsubscribed' | 'vetoed' | 'cut';

/** A span of time on a lane: a subscription. */
export interface Bar {
  readonly kind: string;
  readonly label: string;
  readonly start: number;
  /** The position of the entry that began it. */
  readonly position: number;
  end: number | undefined;
  endPosition: number | undefined;
  ended: BarEnd;
  isEdited: boolean;
}

/** The marbles of one kind on a lane, in columns of the same length. */
export interface Series {
  readonly kind: string;
  readonly ats: number[];
  readonly positions: number[];
}

export interface Lane {
  readonly key: string;
  readonly kind: LaneKind;
  readonly label: string;
  readonly callId: string;
  readonly bars: Bar[];
  readonly series: Map<string, Series>;
  /** The longest bar that has ended, in milliseconds. */
  longest: number;
}

/** One pass of the loop. */
export interface Turn {
  readonly iteration: number;
  readonly start: number;
  readonly position: number;
  end: number | undefined;
  requestedAt: number | undefined;
  firstChunkAt: number | undefined;
  tokens: Tokens;
}

/** A call and its sub-agents. */
export interface CallLanes {
  readonly callId: string;
  name: string;
  readonly depth: number;
  readonly start: number;
  readonly position: number;
  /** The tool call that made it. */
  readonly toolCallId: string | undefined;
  end: number | undefined;
  endPosition: number | undefined;
  /** Why it ended: the reason of its reply, or the code of its error. */
  reason: string;
  hasFailed: boolean;
  /** Whether marks show its subscriptions. Without marks, events do. */
  isInspected: boolean;
  tokens: Tokens;
  readonly turns: Turn[];
  readonly lanes: Lane[];
  readonly children: CallLanes[];
  /** The lanes of tool calls, by the id of the tool call. */
  readonly tools: Map<string, Lane>;
  readonly toolsByStep: Map<string, string>;
  readonly stepsByTool: Map<string, string>;
  /** The position at which each step of the call begins, by its id. */
  readonly steps: Map<string, number>;
  readonly open: Map<string, Bar>;
}

export interface Lanes extends Fold {
  readonly root: CallLanes | undefined;
  readonly calls: ReadonlyMap<string, CallLanes>;
  /** Changes when a lane or a call is added. */
  readonly shape: number;
}

const ranks: Readonly<Record<LaneKind, number>> = {
  ...{ steps: 0, model: 1, demand: 2, tool: 3, interceptors: 4, holds: 5, events: 6 },
};

const laneLabels: Readonly<Record<LaneKind, string>> = {
  steps: 'waits, steps',
  model: 'model',
  demand: 'demand',
  tool: 'tool',
  interceptors: 'interceptors',
  holds: 'holds',
  events: 'events',
};

export const createLanes = (): Lanes => {
  const calls = new Map<string, CallLanes>();
  let root: CallLanes | undefined;
  let shape = 0;

  const callOf = (
    callId: string,
    parentId: string | undefined,
    name: string,
    at: Place,
  ): CallLanes => {
    const known = calls.get(callId);
    if (known !== undefined) return known;
    const parent =
      parentId === undefined ? undefined : (calls.get(parentId) ?? nearestAbove(callId, calls));
    const call = newCall(callId, name, parent, at);
    calls.set(callId, call);
    if (parent === undefined) root ??= call;
    else parent.children.push(call);
    shape += 1;
    return call;
  };
  const laneOf = (call: CallLanes, kind: LaneKind, id = '', label = laneLabels[kind]): Lane => {
    const key = `${call.callId} ${kind} ${id}`;
    const known =
      kind === 'tool' ? call.tools.get(id) : call.lanes.find((lane) => lane.key === key);
    if (known !== undefined) return known;
    const { callId } = call;
    const lane: Lane = { key, kind, label, callId, bars: [], series: new Map(), longest: 0 };
    const before = call.lanes.findIndex((other) => ranks[other.kind] > ranks[kind]);
    call.lanes.splice(before === -1 ? call.lanes.length : before, 0, lane);
    if (kind === 'tool') call.tools.set(id, lane);
    shape += 1;
    return lane;
  };
  const toolOf = (call: CallLanes, id: string, name?: string): Lane =>
    laneOf(call, 'tool', id, name ?? id);

  const onMark = (mark: Mark, at: number, position: number): void => {
    const place = { at, position };
    const call = callOf(mark.callId, parentIdIn(mark.callId, calls), '', place);
    call.isInspected = true;
    switch (mark.mark) {
      case 'step':
        onStep(call, mark, place);
        return;
      case 'request': {
        const lane = laneOf(call, 'model');
        if (mark.phase !== 'started')
          closeBar(call, lane, `request ${mark.id}`, place, barEnds[mark.phase]);
        else openBar(call, lane, `request ${mark.id}`, newBar('request', mark.model, place));
        return;
      }
      case 'demand': {
        const lane = laneOf(call, 'demand');
        if (mark.isOpen) closeBar(call, lane, 'demand', place, 'complete');
        else openBar(call, lane, 'demand', newBar('closed', 'demand closed', place));
        return;
      }
      case 'interceptors': {
        const lane = laneOf(call, 'interceptors');
        const key = `interceptors ${mark.id}`;
        if (mark.phase === 'started') {
          openBar(call, lane, key, newBar(mark.of, `${mark.of}: ${mark.names.join(', ')}`, place));
          return;
        }
        const bar = closeBar(call, lane, key, place, barEnds[mark.phase]);
        if (bar !== undefined && mark.isEdited === true) bar.isEdited = true;
        return;
      }
      case 'hold': {
        const lane = laneOf(call, 'holds');
        addMarble(lane, mark.phase === 'held' ? 'held' : 'released', place);
        if (mark.phase === 'held')
          openBar(call, lane, `hold ${mark.id}`, newBar('hold', mark.of, place));
        else closeBar(call, lane, `hold ${mark.id}`, place, barEnds[mark.phase]);
      }
    }
  };
  const onStep = (call: CallLanes, mark: Extract<Mark, { mark: 'step' }>, place: Place): void => {
    const isStart = mark.phase === 'started';
    beginStep(call, mark.id.replace(/\/intent$/u, ''), place);
    const ended = isStart ? 'open' : barEnds[mark.phase];
    if (mark.kind === 'tool' || mark.kind === 'intent') {
      const step = mark.id.replace(/\/intent$/u, '');
      const id = call.toolsByStep.get(step) ?? step;
      const lane = toolOf(call, id);
      const key = `${mark.kind} ${id}`;
      if (isStart) openBar(call, lane, key, newBar(mark.kind, lane.label, place));
      else closeBar(call, lane, key, place, ended);
      return;
    }
    const kind = mark.kind === 'model' ? 'model' : 'steps';
    const key = kind === 'model' ? 'message' : `step ${mark.id}`;
    const lane = laneOf(call, kind);
    // Rows depend on what is open.
    if (kind === 'steps') shape += 1;
    if (isStart)
      openBar(call, lane, key, newBar(kind === 'model' ? 'message' : mark.kind, mark.id, place));
    else closeBar(call, lane, key, place, ended);
  };
  const onEvent = (event: ShownEvent, at: number, position: number): void => {
    const place = { at, position };
    const { callId, parentId, agent, iteration } = event;
    const call = callOf(callId, parentId, agent.at(-1) ?? '', place);
    call.name = agent.at(-1) ?? call.name;
    if (call.end === undefined) turnOf(call, iteration, place);
    switch (event.type) {
      case 'preReasoning':
      case 'preSummary':
      case 'prePlanning': {
        const lane = laneOf(call, 'model');
        openBar(call, lane, 'message', newBar('message', event.type, place));
        addMarble(lane, event.type, place);
        requested(call, at);
        if (event.type === 'preReasoning') beginStep(call, `${iteration}`, place);
        return;
      }
      case 'postReasoning':
      case 'postSummary':
      case 'postPlanning': {
        const lane = laneOf(call, 'model');
        closeBar(call, lane, 'message', place, 'complete');
        addMarble(lane, event.type, place);
        used(call, tokensIn(event.usage));
        if (event.type === 'postReasoning') named(call, iteration, event);
        return;
      }
      case 'messageDiscarded':
      case 'modelRetry':
      case 'modelFallback':
      case 'modelWaiting':
      case 'repaired':
        addMarble(laneOf(call, 'model'), event.type, place);
        return;
      case 'preActing':
      case 'actingChunk':
      case 'postActing':
        onTool(call, event, place);
        return;
      case 'postCall':
        addMarble(laneOf(call, 'events'), event.type, place);
        call.tokens = tokensIn(event.reply.usage);
        endCall(call, place, event.reply.reason, false);
        return;
      case 'error':
        addMarble(laneOf(call, 'events'), event.type, place);
        endCall(call, place, errorIn(event.error).code, true);
        return;
      default:
        addMarble(laneOf(call, 'events'), event.type, place);
        onOther(call, event, place);
    }
  };
  const onTool = (call: CallLanes, event: ToolEvent, place: Place): void => {
    const { id, name } = toolCallIn(event.toolCall);
    const lane = toolOf(call, id, name);
    const key = `tool ${id}`;
    if (event.type === 'postActing') {
      const { isError } = event.result;
      const started = call.open.get(key);
      if (started === undefined && !lane.bars.some(({ kind }) => kind === 'tool')) {
        const start = Math.max(call.start, place.at - event.ms);
        openBar(call, lane, key, newBar('tool', name, { ...place, at: start }));
      }
      if (!call.isInspected || started === undefined || isError) {
        closeBar(call, lane, key, place, isError ? 'error' : 'complete');
      }
      addMarble(lane, isError ? 'toolError' : 'postActing', place);
      return;
    }
    const step = call.stepsByTool.get(id);
    if (step !== undefined) beginStep(call, step, place);
    if (event.type === 'preActing' && !call.isInspected)
      openBar(call, lane, key, newBar('tool', name, place));
    addMarble(lane, event.type, place);
  };
  const onOther = (call: CallLanes, event: ShownEvent, place: Place): void => {
    if (anyFields(event)['type'] !== 'vetoed') return;
    const { of, toolCallId } = anyFields(event);
    if (typeof toolCallId === 'string') {
      const lane = toolOf(call, toolCallId);
      addMarble(lane, 'vetoed', place);
      closeBar(call, lane, `tool ${toolCallId}`, place, 'vetoed');
    } else if (stringOf(of).endsWith('Reasoning')) {
      closeBar(call, laneOf(call, 'model'), 'message', place, 'vetoed');
    }
  };
  /** The steps `2/0`, `2/1` … of the tool calls of a message. */
  const named = (call: CallLanes, iteration: number, event: ShownEvent): void => {
    toolCallsIn(anyFields(event)['message']).forEach(({ id, name }, index) => {
      call.toolsByStep.set(`${iteration}/${index}`, id);
      call.stepsByTool.set(id, `${iteration}/${index}`);
      toolOf(call, id, name);
    });
  };
  const onChunks = (stream: ChunkStream, from: number, to: number): void => {
    const { head, ats, positions } = stream;
    const place = { at: ats[from] ?? 0, position: positions[from] ?? 0 };
    const call = callOf(head.callId, head.parentId, head.agent.at(-1) ?? '', place);
    if (call.end === undefined) turnOf(call, head.iteration, place);
    const turn = call.turns.at(-1);
    if (turn !== undefined) turn.firstChunkAt ??= place.at;
    const lane = laneOf(call, 'model');
    const series = seriesOf(lane, head.kind);
    for (let at = from; at < to; at += 1) {
      series.ats.push(ats[at] ?? 0);
      series.positions.push(positions[at] ?? 0);
    }
  };
  return {
    get root() {
      return root;
    },
    calls,
    get shape() {
      return shape;
    },
    event: onEvent,
    mark: onMark,
    chunks: onChunks,
  };
};

// ---------------------------------------------------------------- calls

interface Place {
  readonly at: number;
  readonly position: number;
}

type ToolEvent = Extract<ShownEvent, { type: 'preActing' | 'actingChunk' | 'postActing' }>;

const newCall = (
  callId: string,
  name: string,
  parent: CallLanes | undefined,
  { at, position }: Place,
): CallLanes => ({
  callId,
  name: name === '' ? (callId.split('/').at(-1) ?? callId) : name,
  depth: parent === undefined ? 0 : parent.depth + 1,
  start: at,
  position,
  toolCallId: parent === undefined ? undefined : toolCallIdOf(callId, parent),
  end: undefined,
  endPosition: undefined,
  reason: '',
  hasFailed: false,
  isInspected: parent?.isInspected ?? false,
  tokens: noTokens,
  turns: [],
  lanes: [],
  children: [],
  tools: new Map(),
  toolsByStep: new Map(),
  stepsByTool: new Map(),
  steps: new Map(),
  open: new Map(),
});

/** The id of a sub-agent call consists of the parent's id, the tool call's id and, after the first call, a number. */
const toolCallIdOf = (callId: string, parent: CallLanes): string | undefined => {
  const before = `${parent.callId}/`;
  if (!callId.startsWith(before)) return undefined;
  const place = callId.slice(before.length);
  const plain = place.replace(/(?:\+approval)?(?:\+\d+(?:\.\d+)?)*$/u, '');
  return [place, plain].find((id) => parent.tools.has(id));
};

const nearestAbove = (
  callId: string,
  calls: ReadonlyMap<string, CallLanes>,
): CallLanes | undefined => {
  const parentId = parentIdIn(callId, calls);
  return parentId === undefined ? [...calls.values()][0] : calls.get(parentId);
};

/** The call whose id is the longest beginning of this one. */
const parentIdIn = (callId: string, calls: ReadonlyMap<string, CallLanes>): string | undefined => {
  for (let end = callId.lastIndexOf('/'); end > 0; end = callId.lastIndexOf('/', end - 1)) {
    if (calls.has(callId.slice(0, end))) return callId.slice(0, end);
  }
  return undefined;
};

const turnOf = (call: CallLanes, iteration: number, { at, position }: Place): void => {
  const last = call.turns.at(-1);
  if (iteration === 0 || (last !== undefined && last.iteration >= iteration)) return;
  if (last !== undefined) last.end = at;
  call.turns.push({
    ...{ iteration, start: at, position },
    ...{ end: undefined, requestedAt: undefined, firstChunkAt: undefined, tokens: noTokens },
  });
};

const beginStep = ({ steps }: CallLanes, id: string, { position }: Place): void => {
  if (!steps.has(id)) steps.set(id, position);
};

const requested = ({ turns }: CallLanes, at: number): void => {
  const turn = turns.at(-1);
  if (turn !== undefined) turn.requestedAt ??= at;
};

const used = (call: CallLanes, tokens: Tokens): void => {
  call.tokens = addTokens(call.tokens, tokens);
  const turn = call.turns.at(-1);
  if (turn !== undefined) turn.tokens = addTokens(turn.tokens, tokens);
};

/** Ends a call, and what is still open in it and below. */
const endCall = (call: CallLanes, place: Place, reason: string, hasFailed: boolean): void => {
  for (const child of call.children) {
    if (child.end === undefined) endCall(child, place, 'aborted', true);
  }
  call.end = place.at;
  call.endPosition = place.position;
  call.reason = reason;
  call.hasFailed = hasFailed;
  const turn = call.turns.at(-1);
  if (turn !== undefined) turn.end = place.at;
  // Marks of inspected calls end their bars, at the same time.
  if (call.isInspected) return;
  for (const lane of call.lanes) {
    for (const bar of lane.bars) {
      if (bar.end === undefined) endBar(lane, bar, place, hasFailed ? 'unsubscribed' : 'complete');
    }
  }
  call.open.clear();
};

// ---------------------------------------------------------------- bars and marbles

const barEnds = {
  ...{ ended: 'complete', failed: 'error', cut: 'cut', cancelled: 'unsubscribed' },
  ...{ vetoed: 'vetoed', continued: 'complete', edited: 'complete' },
} as const satisfies Readonly<Record<string, BarEnd>>;

const newBar = (kind: string, label: string, { at, position }: Place): Bar => ({
  ...{ kind, label, start: at, position },
  ...{ end: undefined, endPosition: undefined, ended: 'open', isEdited: false },
});

const openBar = (call: CallLanes, lane: Lane, key: string, bar: Bar): void => {
  if (call.open.has(key)) return;
  call.open.set(key, bar);
  lane.bars.push(bar);
};

const closeBar = (
  call: CallLanes,
  lane: Lane,
  key: string,
  place: Place,
  ended: BarEnd,
): Bar | undefined => {
  const bar = call.open.get(key);
  if (bar === undefined) return undefined;
  call.open.delete(key);
  endBar(lane, bar, place, ended);
  return bar;
};

const endBar = (lane: Lane, bar: Bar, { at, position }: Place, ended: BarEnd): void => {
  bar.end = at;
  bar.endPosition = position;
  bar.ended = ended;
  lane.longest = Math.max(lane.longest, at - bar.start);
};

const seriesOf = (lane: Lane, kind: string): Series => {
  const known = lane.series.get(kind);
  if (known !== undefined) return known;
  const series: Series = { kind, ats: [], positions: [] };
  lane.series.set(kind, series);
  return series;
};

const addMarble = (lane: Lane, kind: string, { at, position }: Place): void => {
  const series = seriesOf(lane, kind);
  series.ats.push(at);
  series.positions.push(position);
};
