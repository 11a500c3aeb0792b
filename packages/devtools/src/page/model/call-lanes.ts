// The lanes of one call: subscriptions are bars, and values are marbles in columns.
import { addTokens, noTokens, type Tokens } from './read-event.js';

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
  /** Whether a mark began it: then a mark ends it. Otherwise, events do. */
  readonly isMarked: boolean;
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
  /** Of the lane of a tool call. */
  readonly toolCallId: string | undefined;
  readonly bars: Bar[];
  readonly series: Map<string, Series>;
  /** The longest bar that has ended, in milliseconds. */
  longest: number;
  /** The times of its first and its last entry, and how many of its bars are open. */
  firstAt: number;
  lastAt: number;
  openBars: number;
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
  /** Of all its requests; of its sub-agents, too, once it has ended. */
  tokens: Tokens;
  /** The tokens after each request, by the position of its end. */
  readonly spent: { readonly position: number; readonly tokens: Tokens }[];
  readonly turns: Turn[];
  readonly lanes: Lane[];
  readonly children: CallLanes[];
  /** The lanes of tool calls, by the id of the tool call. */
  readonly tools: Map<string, Lane>;
  readonly byKind: Map<LaneKind, Lane>;
  readonly toolsByStep: Map<string, string>;
  readonly stepsByTool: Map<string, string>;
  /** The position at which each step of the call begins, by its id. */
  readonly steps: Map<string, number>;
  readonly open: Map<string, { readonly bar: Bar; readonly lane: Lane }>;
}

// ---------------------------------------------------------------- calls

export interface Place {
  readonly at: number;
  readonly position: number;
}

export const newCall = (
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
  spent: [],
  turns: [],
  lanes: [],
  children: [],
  tools: new Map(),
  byKind: new Map(),
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

export const nearestAbove = (
  callId: string,
  calls: ReadonlyMap<string, CallLanes>,
): CallLanes | undefined => {
  const parentId = parentIdIn(callId, calls);
  return parentId === undefined ? [...calls.values()][0] : calls.get(parentId);
};

/** The call whose id is the longest beginning of this one. */
export const parentIdIn = (
  callId: string,
  calls: ReadonlyMap<string, CallLanes>,
): string | undefined => {
  for (let end = callId.lastIndexOf('/'); end > 0; end = callId.lastIndexOf('/', end - 1)) {
    if (calls.has(callId.slice(0, end))) return callId.slice(0, end);
  }
  return undefined;
};

export const turnOf = (call: CallLanes, iteration: number, { at, position }: Place): void => {
  const last = call.turns.at(-1);
  if (iteration === 0 || (last !== undefined && last.iteration >= iteration)) return;
  if (last !== undefined) last.end = at;
  call.turns.push({
    ...{ iteration, start: at, position },
    ...{ end: undefined, requestedAt: undefined, firstChunkAt: undefined, tokens: noTokens },
  });
};

export const beginStep = ({ steps }: CallLanes, id: string, { position }: Place): void => {
  if (!steps.has(id)) steps.set(id, position);
};

export const requested = ({ turns }: CallLanes, at: number): void => {
  const turn = turns.at(-1);
  if (turn !== undefined) turn.requestedAt ??= at;
};

export const used = (call: CallLanes, tokens: Tokens, position: number): void => {
  call.tokens = addTokens(call.tokens, tokens);
  call.spent.push({ position, tokens: call.tokens });
  const turn = call.turns.at(-1);
  if (turn !== undefined) turn.tokens = addTokens(turn.tokens, tokens);
};

/** The tokens and the end of a call, as they were at a position. */
export const totalsAt = (call: CallLanes, position: number) => {
  const { spent, turns, endPosition, end, tokens } = call;
  const hasEnded = endPosition !== undefined && endPosition < position;
  const before = spent.findLast((one) => one.position < position)?.tokens ?? noTokens;
  return {
    tokens: hasEnded ? tokens : before,
    end: hasEnded ? end : undefined,
    turns: turns.filter((turn) => turn.position < position),
  };
};

/** Ends a call, and what is still open in it and below. */
export const endCall = (
  call: CallLanes,
  place: Place,
  reason: string,
  hasFailed: boolean,
): void => {
  for (const child of call.children) {
    if (child.end === undefined) endCall(child, place, 'aborted', true);
  }
  call.end = place.at;
  call.endPosition = place.position;
  call.reason = reason;
  call.hasFailed = hasFailed;
  const turn = call.turns.at(-1);
  if (turn !== undefined) turn.end = place.at;
  for (const [key, { bar, lane }] of call.open) {
    // The marks of its end are still to come.
    if (bar.isMarked) continue;
    endBar(lane, bar, place, hasFailed ? 'unsubscribed' : 'complete');
    call.open.delete(key);
  }
};

// ---------------------------------------------------------------- bars and marbles

export const barEnds = {
  ...{ ended: 'complete', failed: 'error', cut: 'cut', cancelled: 'unsubscribed' },
  ...{ vetoed: 'vetoed', continued: 'complete', edited: 'complete' },
} as const satisfies Readonly<Record<string, BarEnd>>;

export const newBar = (
  kind: string,
  label: string,
  { at, position }: Place,
  isMarked = false,
): Bar => ({
  ...{ kind, label, start: at, position, isMarked },
  ...{ end: undefined, endPosition: undefined, ended: 'open', isEdited: false },
});

export const openBar = (call: CallLanes, lane: Lane, key: string, bar: Bar): void => {
  if (call.open.has(key)) return;
  call.open.set(key, { bar, lane });
  lane.bars.push(bar);
  lane.openBars += 1;
  touch(lane, bar.start);
};

export const closeBar = (
  call: CallLanes,
  lane: Lane,
  key: string,
  place: Place,
  ended: BarEnd,
): Bar | undefined => {
  const bar = call.open.get(key)?.bar;
  if (bar === undefined) return undefined;
  call.open.delete(key);
  endBar(lane, bar, place, ended);
  return bar;
};

const endBar = (lane: Lane, bar: Bar, { at, position }: Place, ended: BarEnd): void => {
  bar.end = at;
  bar.endPosition = position;
  bar.ended = ended;
  lane.openBars -= 1;
  touch(lane, at);
  lane.longest = Math.max(lane.longest, at - bar.start);
};

const touch = (lane: Lane, at: number): void => {
  lane.firstAt = Math.min(lane.firstAt, at);
  lane.lastAt = Math.max(lane.lastAt, at);
};

export const newLane = (
  given: Pick<Lane, 'key' | 'kind' | 'label' | 'callId' | 'toolCallId'>,
): Lane => ({
  ...given,
  ...{ bars: [], series: new Map(), longest: 0 },
  ...{ firstAt: Infinity, lastAt: -Infinity, openBars: 0 },
});

export const seriesOf = (lane: Lane, kind: string): Series => {
  const known = lane.series.get(kind);
  if (known !== undefined) return known;
  const series: Series = { kind, ats: [], positions: [] };
  lane.series.set(kind, series);
  return series;
};

export const addMarble = (lane: Lane, kind: string, { at, position }: Place): void => {
  const series = seriesOf(lane, kind);
  series.ats.push(at);
  series.positions.push(position);
  touch(lane, at);
};
