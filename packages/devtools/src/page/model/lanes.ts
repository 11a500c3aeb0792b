// The lanes of a run, which the marble diagram draws. Each entry of the log is read one time.
import type { Mark, ShownEvent } from '../protocol.js';
import {
  addMarble,
  barEnds,
  beginStep,
  type CallLanes,
  closeBar,
  endCall,
  type Lane,
  type LaneKind,
  nearestAbove,
  newBar,
  newCall,
  newLane,
  openBar,
  parentIdIn,
  type Place,
  requested,
  seriesOf,
  turnOf,
  used,
} from './call-lanes.js';
import type { ChunkStream, Fold } from './log.js';
import { anyFields, errorIn, stringOf, toolCallIn, toolCallsIn, tokensIn } from './read-event.js';

/** The lanes that the entries of a log complete. */
interface Book {
  readonly calls: ReadonlyMap<string, CallLanes>;
  readonly callOf: (
    callId: string,
    parentId: string | undefined,
    name: string,
    place: Place,
  ) => CallLanes;
  readonly laneOf: (call: CallLanes, kind: LaneKind) => Lane;
  /** The lane of a tool call. */
  readonly toolOf: (call: CallLanes, id: string, name?: string) => Lane;
  /** Rows have to be listed again. */
  readonly changed: () => void;
}

type ToolEvent = Extract<ShownEvent, { type: 'preActing' | 'actingChunk' | 'postActing' }>;

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
    const known = kind === 'tool' ? call.tools.get(id) : call.byKind.get(kind);
    if (known !== undefined) return known;
    const toolCallId = kind === 'tool' ? id : undefined;
    const lane = newLane({ key, kind, label, callId: call.callId, toolCallId });
    const before = call.lanes.findIndex((other) => ranks[other.kind] > ranks[kind]);
    call.lanes.splice(before === -1 ? call.lanes.length : before, 0, lane);
    if (kind === 'tool') call.tools.set(id, lane);
    else call.byKind.set(kind, lane);
    shape += 1;
    return lane;
  };
  const toolOf = (call: CallLanes, id: string, name?: string): Lane =>
    laneOf(call, 'tool', id, name ?? id);

  const changed = (): void => {
    shape += 1;
  };
  const book: Book = { calls, callOf, laneOf, toolOf, changed };
  return {
    get root() {
      return root;
    },
    calls,
    get shape() {
      return shape;
    },
    event: (...entry) => onEvent(book, ...entry),
    mark: (...entry) => onMark(book, ...entry),
    chunks: (...entry) => onChunks(book, ...entry),
  };
};

const onMark = (book: Book, mark: Mark, at: number, position: number): void => {
  const place = { at, position };
  const call = book.callOf(mark.callId, parentIdIn(mark.callId, book.calls), '', place);
  if (mark.mark === 'step' || mark.mark === 'request') call.isInspected = true;
  switch (mark.mark) {
    case 'step':
      onStep(book, call, mark, place);
      return;
    case 'request': {
      const lane = book.laneOf(call, 'model');
      if (mark.phase !== 'started')
        closeBar(call, lane, `request ${mark.id}`, place, barEnds[mark.phase]);
      else openBar(call, lane, `request ${mark.id}`, newBar('request', mark.model, place, true));
      return;
    }
    case 'demand': {
      const lane = book.laneOf(call, 'demand');
      if (mark.isOpen) closeBar(call, lane, 'demand', place, 'complete');
      else openBar(call, lane, 'demand', newBar('closed', 'demand closed', place, true));
      return;
    }
    case 'interceptors': {
      const lane = book.laneOf(call, 'interceptors');
      const key = `interceptors ${mark.id}`;
      if (mark.phase === 'started') {
        openBar(
          call,
          lane,
          key,
          newBar(mark.of, `${mark.of}: ${mark.names.join(', ')}`, place, true),
        );
        return;
      }
      const bar = closeBar(call, lane, key, place, barEnds[mark.phase]);
      if (bar !== undefined && mark.isEdited === true) bar.isEdited = true;
      return;
    }
    case 'hold': {
      const lane = book.laneOf(call, 'holds');
      addMarble(lane, mark.phase === 'held' ? 'held' : 'released', place);
      if (mark.phase === 'held')
        openBar(call, lane, `hold ${mark.id}`, newBar('hold', mark.of, place, true));
      else closeBar(call, lane, `hold ${mark.id}`, place, barEnds[mark.phase]);
    }
  }
};
const onStep = (
  book: Book,
  call: CallLanes,
  mark: Extract<Mark, { mark: 'step' }>,
  place: Place,
): void => {
  const isStart = mark.phase === 'started';
  beginStep(call, mark.id.replace(/\/intent$/u, ''), place);
  const ended = isStart ? 'open' : barEnds[mark.phase];
  if (mark.kind === 'tool' || mark.kind === 'intent') {
    const step = mark.id.replace(/\/intent$/u, '');
    const id = call.toolsByStep.get(step) ?? step;
    const lane = book.toolOf(call, id);
    const key = `${mark.kind} ${id}`;
    if (isStart) openBar(call, lane, key, newBar(mark.kind, lane.label, place, true));
    else closeBar(call, lane, key, place, ended);
    return;
  }
  const kind = mark.kind === 'model' ? 'model' : 'steps';
  const key = kind === 'model' ? 'message' : `step ${mark.id}`;
  const lane = book.laneOf(call, kind);
  // Rows depend on what is open.
  if (kind === 'steps') book.changed();
  if (isStart)
    openBar(
      call,
      lane,
      key,
      newBar(kind === 'model' ? 'message' : mark.kind, mark.id, place, true),
    );
  else closeBar(call, lane, key, place, ended);
};
const onEvent = (book: Book, event: ShownEvent, at: number, position: number): void => {
  const place = { at, position };
  const { callId, parentId, agent, iteration } = event;
  const call = book.callOf(callId, parentId, agent.at(-1) ?? '', place);
  call.name = agent.at(-1) ?? call.name;
  if (call.end === undefined) turnOf(call, iteration, place);
  switch (event.type) {
    case 'preReasoning':
    case 'preSummary':
    case 'prePlanning': {
      const lane = book.laneOf(call, 'model');
      openBar(call, lane, 'message', newBar('message', event.type, place));
      addMarble(lane, event.type, place);
      requested(call, at);
      if (event.type === 'preReasoning') beginStep(call, `${iteration}`, place);
      return;
    }
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning': {
      const lane = book.laneOf(call, 'model');
      closeBar(call, lane, 'message', place, 'complete');
      addMarble(lane, event.type, place);
      used(call, tokensIn(event.usage), position);
      if (event.type === 'postReasoning') named(book, call, iteration, event);
      return;
    }
    case 'messageDiscarded':
    case 'modelRetry':
    case 'modelFallback':
    case 'modelWaiting':
    case 'repaired':
      addMarble(book.laneOf(call, 'model'), event.type, place);
      return;
    case 'preActing':
    case 'actingChunk':
    case 'postActing':
      onTool(book, call, event, place);
      return;
    case 'postCall':
      addMarble(book.laneOf(call, 'events'), event.type, place);
      call.tokens = tokensIn(event.reply.usage);
      endCall(call, place, event.reply.reason, false);
      return;
    case 'error':
      addMarble(book.laneOf(call, 'events'), event.type, place);
      endCall(call, place, errorIn(event.error).code, true);
      return;
    default:
      addMarble(book.laneOf(call, 'events'), event.type, place);
      onOther(book, call, event, place);
  }
};
const onTool = (book: Book, call: CallLanes, event: ToolEvent, place: Place): void => {
  const { id, name } = toolCallIn(event.toolCall);
  const lane = book.toolOf(call, id, name);
  const key = `tool ${id}`;
  if (event.type === 'postActing') {
    const { isError } = event.result;
    const started = call.open.get(key);
    if (started === undefined && !lane.bars.some(({ kind }) => kind === 'tool')) {
      const start = Math.max(call.start, place.at - event.ms);
      openBar(call, lane, key, newBar('tool', name, { ...place, at: start }));
    }
    if (started?.bar.isMarked !== true || isError) {
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
const onOther = (book: Book, call: CallLanes, event: ShownEvent, place: Place): void => {
  if (anyFields(event)['type'] !== 'vetoed') return;
  const { of, toolCallId } = anyFields(event);
  if (typeof toolCallId === 'string') {
    const lane = book.toolOf(call, toolCallId);
    addMarble(lane, 'vetoed', place);
    closeBar(call, lane, `tool ${toolCallId}`, place, 'vetoed');
  } else if (stringOf(of).endsWith('Reasoning')) {
    closeBar(call, book.laneOf(call, 'model'), 'message', place, 'vetoed');
  }
};
/** The steps `2/0`, `2/1` … of the tool calls of a message. */
const named = (book: Book, call: CallLanes, iteration: number, event: ShownEvent): void => {
  toolCallsIn(anyFields(event)['message']).forEach(({ id, name }, index) => {
    call.toolsByStep.set(`${iteration}/${index}`, id);
    call.stepsByTool.set(id, `${iteration}/${index}`);
    book.toolOf(call, id, name);
  });
};
const onChunks = (book: Book, stream: ChunkStream, from: number, to: number): void => {
  const { head, ats, positions } = stream;
  const place = { at: ats[from] ?? 0, position: positions[from] ?? 0 };
  const call = book.callOf(head.callId, head.parentId, head.agent.at(-1) ?? '', place);
  if (call.end === undefined) turnOf(call, head.iteration, place);
  const turn = call.turns.at(-1);
  if (turn !== undefined) turn.firstChunkAt ??= place.at;
  const lane = book.laneOf(call, 'model');
  const series = seriesOf(lane, head.kind);
  for (let at = from; at < to; at += 1) {
    series.ats.push(ats[at] ?? 0);
    series.positions.push(positions[at] ?? 0);
  }
};
