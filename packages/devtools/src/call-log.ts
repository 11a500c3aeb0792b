import { type AgentEvent, type EventOf, type Message, textOf, type Usage } from 'millrace';
import type {} from 'millrace/journal';
import type {} from 'millrace/sessions';
import type {} from 'millrace/traffic';
import { describeCost, isRecord, messageOf } from 'millrace/values';
import {
  type BeforeModel,
  type CallEntry,
  type ChunkRun,
  isDeltaKind,
  type LogItem,
  type Mark,
  type ShownEvent,
} from './page/protocol.js';
import { withoutKeys } from './page/secrets.js';

/** The events, marks and deltas of a root call, and what a list shows of it. */
export interface CallLog {
  readonly id: string;
  readonly entry: CallEntry;
  /** The number of events, marks and deltas. */
  readonly length: number;
  /** Whether the call has ended. */
  readonly isOver: boolean;
  /** Adds an event, unless it was added before. */
  add(event: AgentEvent): void;
  mark(mark: Mark): void;
  /** Changes what the list shows. */
  set(change: Partial<CallEntry>): void;
  /** Ends it without its last event, which was not seen. */
  end(status: CallEntry['status']): void;
  /** The items from one on, up to `limit` events, marks and deltas. */
  slice(from: number, limit: number): readonly LogItem[];
  /** Whether an event contains a string. */
  contains(text: string): boolean;
}

/** A run of deltas that grows while its message streams. */
interface OpenRun extends Omit<ChunkRun, 'ats' | 'deltas'> {
  readonly ats: number[];
  readonly deltas: string[];
}

interface Entry {
  /** The place of its first event, mark or delta. */
  readonly at: number;
  readonly item: ShownEvent | Mark | OpenRun;
}

type Delta = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'> & {
  readonly kind: ChunkRun['kind'];
};

export const createCallLog = (id: string, known: Partial<CallEntry> = {}): CallLog => {
  const entries = createEntries();
  const compact = createMessageList();
  const isFailure = createFailures();
  let lastSeq = 0;
  let depth = Infinity;
  let isOver = false;
  let entry: CallEntry = {
    ...{ id, agent: '', input: '', answer: '', status: 'running', startedAt: 0, tokens: 0 },
    ...{ isOpen: true, isInspected: false },
    ...known,
  };
  return {
    id,
    get entry() {
      return entry;
    },
    get length() {
      return entries.length;
    },
    get isOver() {
      return isOver;
    },
    add: (event) => {
      // An event reaches the agents of all calls above: several of them may be watched.
      if (event.seq <= lastSeq) return;
      lastSeq = event.seq;
      if (isDelta(event)) entries.addDelta(event);
      else
        entries.push(
          shown(withCause('messages' in event && 'options' in event ? compact(event) : event)),
        );
      // The outermost call that is seen: its root may be of another agent.
      depth = Math.min(depth, event.agent.length);
      const isTop = event.agent.length === depth;
      const change = isFailure(event)
        ? { failedTools: (entry.failedTools ?? 0) + 1 }
        : changeBy(event, entry, isTop);
      if (change !== undefined) entry = { ...entry, ...change };
      if (isTop) isOver = event.type === 'postCall' || event.type === 'error';
    },
    mark: (mark) => {
      entries.push(withSent(mark, compact));
    },
    set: (change) => {
      entry = { ...entry, ...change };
    },
    end: (status) => {
      if (isOver) return;
      isOver = true;
      entry = { ...entry, status };
    },
    slice: (from, limit) => entries.slice(from, limit),
    contains: (text) => entries.contains(text),
  };
};

/** The items of a log. Deltas that follow each other are one entry. */
const createEntries = () => {
  const entries: Entry[] = [];
  let length = 0;
  const push = (item: Entry['item']): void => {
    entries.push({ at: length, item });
    length += 1;
  };
  return {
    get length() {
      return length;
    },
    push,
    addDelta: (event: Delta): void => {
      const last = entries.at(-1)?.item;
      if (last !== undefined && isRun(last) && continues(last, event)) {
        last.ats.push(event.at);
        last.deltas.push(event.delta);
        length += 1;
      } else push(runOf(event));
    },
    slice: (from: number, limit: number) => slice(entries, from, Math.min(length, from + limit)),
    contains: (text: string): boolean => entries.some(({ item }) => contains(item, text)),
  };
};

/** Each request has the whole conversation: an event has its new messages, and the ranges of all in the list of the log. */
const createMessageList = () => {
  const places = new WeakMap<Message, number>();
  let count = 0;
  return <Request extends BeforeModel>(event: Request): Request => {
    const added = event.messages.filter((message) => !places.has(message));
    for (const message of added) {
      if (places.has(message)) continue;
      places.set(message, count);
      count += 1;
    }
    const ranges = rangesOf(event.messages.map((message) => places.get(message) ?? 0));
    return { ...event, messages: [...new Set(added)], ...{ ranges } };
  };
};

/** A mark as JSON has it. */
const withSent = (mark: Mark, compact: <R extends BeforeModel>(request: R) => R): Mark => {
  if (mark.mark !== 'request' || mark.sent === undefined) return mark;
  const sent: unknown = JSON.parse(textOfJson(compact(mark.sent)));
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- JSON of a request is that request
  return { ...mark, sent: sent as BeforeModel };
};

/** Places in a list as `[from, count]`. */
const rangesOf = (places: readonly number[]): readonly (readonly [number, number])[] => {
  const ranges: [number, number][] = [];
  for (const place of places) {
    const last = ranges.at(-1);
    if (last !== undefined && last[0] + last[1] === place) last[1] += 1;
    else ranges.push([place, 1]);
  }
  return ranges;
};

/** The error of a tool, which copies of its event do not have. */
const withCause = (event: AgentEvent): AgentEvent =>
  event.type === 'postActing' && event.error !== undefined
    ? { ...event, ...{ error: event.error } }
    : event;

const isRun = (item: LogItem | OpenRun): item is OpenRun => 'chunks' in item;

/** Citations and whole blocks are entries of their own. */
const isDelta = (event: AgentEvent): event is Delta =>
  (event.type === 'reasoningChunk' ||
    event.type === 'summaryChunk' ||
    event.type === 'planningChunk') &&
  isDeltaKind(event.kind);

const continues = (run: OpenRun, event: Delta): boolean =>
  run.messageId === event.messageId &&
  run.kind === event.kind &&
  run.chunks === event.type &&
  run.toolCall?.index === event.toolCall?.index;

const runOf = (event: Delta): OpenRun => {
  const { type, seq, callId, parentId, agent, iteration, messageId, kind, toolCall } = event;
  return {
    ...{ chunks: type, seq, callId, agent, iteration, messageId, kind },
    ...(parentId === undefined ? {} : { parentId }),
    ...(toolCall === undefined ? {} : { toolCall }),
    ats: [event.at],
    deltas: [event.delta],
  };
};

const slice = (entries: readonly Entry[], from: number, to: number): readonly LogItem[] => {
  const items: LogItem[] = [];
  for (let index = placeOf(entries, from); index < entries.length; index += 1) {
    const entry = entries[index];
    if (entry === undefined || entry.at >= to) break;
    const { at, item } = entry;
    if (!isRun(item)) items.push(item);
    else {
      const [first, last] = [Math.max(0, from - at), Math.min(item.deltas.length, to - at)];
      const [ats, deltas] = [item.ats.slice(first, last), item.deltas.slice(first, last)];
      items.push({ ...item, seq: item.seq + first, ats, deltas });
    }
  }
  return items;
};

/** The index of the entry that has a place, by bisection. */
const placeOf = (entries: readonly Entry[], place: number): number => {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.at ?? 0) <= place) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
};

const contains = (item: Entry['item'], text: string): boolean => {
  if ('mark' in item) return false;
  if (isRun(item)) return item.deltas.join('').toLowerCase().includes(text);
  return textOfJson(item).toLowerCase().includes(text);
};

/** Whether an event has the result of a tool that failed. The result of a tool call that is vetoed is no failure. */
const createFailures = () => {
  const vetoed = new Set<string>();
  return (event: AgentEvent): boolean => {
    if (event.type === 'vetoed') vetoed.add(`${event.callId} ${event.toolCallId ?? ''}`);
    if (event.type !== 'postActing') return false;
    const wasVetoed = vetoed.delete(`${event.callId} ${event.result.toolCallId}`);
    return event.result.isError && !wasVetoed;
  };
};

const changeBy = (
  event: AgentEvent,
  entry: CallEntry,
  isTop: boolean,
): Partial<CallEntry> | undefined => {
  const { agent, at, sessionId } = event;
  const started = entry.startedAt === 0 ? startOf(agent[0] ?? '', at, sessionId) : undefined;
  if (!isTop) return started;
  switch (event.type) {
    case 'preCall':
      return { ...started, input: short(event.input.map(textOf).join(' ')) };
    case 'suspended':
      return { ...started, status: 'suspended' };
    case 'postCall': {
      const { reason, usage, cost } = event.reply;
      const status = reason === 'suspended' ? 'suspended' : 'done';
      const answer = short(textOf(event.reply));
      const tokens = tokensOf(usage);
      return { ...started, status, reason, answer, endedAt: at, tokens, ...costIn(cost) };
    }
    case 'failedCallCost':
      return { ...started, ...costIn(event.cost) };
    case 'error':
      return { ...started, status: 'failed', reason: event.error.code, endedAt: at };
    // A resumed call continues the log after its end.
    case 'stepReplayed':
      return { ...started, status: 'running' };
    case 'postReasoning':
      return { ...started, tokens: entry.tokens + tokensOf(event.usage) };
    default:
      return started;
  }
};

const startOf = (
  agent: string,
  startedAt: number,
  sessionId: string | undefined,
): Partial<CallEntry> => ({ agent, startedAt, ...(sessionId === undefined ? {} : { sessionId }) });

/** An interceptor may have edited it. */
const tokensOf = (usage: Partial<Usage> | null): number =>
  (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);

const costIn = (cost: unknown): Pick<CallEntry, 'cost'> => {
  if (!isRecord(cost)) return {};
  const { currency, total, atLeast } = cost;
  if (typeof currency !== 'string' || typeof atLeast !== 'number') return {};
  const whole = typeof total === 'number' ? { total } : {};
  return { cost: describeCost({ currency, atLeast, ...whole }) };
};

const short = (text: string): string => (text.length > 200 ? `${text.slice(0, 199)}…` : text);

/** The longest string that a log shows: pictures are longer. */
const longest = 1_000_000;

/** An event as JSON has it. */
export const shown = (event: AgentEvent, limit = longest): ShownEvent => {
  const json: unknown = JSON.parse(textOfJson(event, limit));
  // JSON of an event is that event, but for its errors and what JSON cannot express.
  return isShown(json) ? json : failedToShow(event);
};

const isShown = (json: unknown): json is ShownEvent =>
  isRecord(json) && typeof json['type'] === 'string';

const failedToShow = ({ type, rootId, callId, agent, iteration, seq, at }: AgentEvent) => {
  const note = { type, rootId, callId, agent, iteration, seq, at, unreadable: true };
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- its payload is missing
  return note as unknown as ShownEvent;
};

/** JSON of any value: cycles and big integers are replaced by strings. */
export const textOfJson = (value: unknown, limit = longest): string => {
  const plain = (_: string, it: unknown): unknown => {
    if (typeof it === 'bigint') return `${String(it)}n`;
    if (typeof it === 'string' && it.length > limit)
      return `${it.slice(0, limit)}… (${it.length} characters)`;
    return it instanceof Error ? errorFields(it) : it;
  };
  // Its own `toJSON` may fail.
  return jsonOf(value, plain) ?? jsonOf(value, acyclic(plain)) ?? '{}';
};

const jsonOf = (value: unknown, replace: (key: string, value: unknown) => unknown) => {
  try {
    return JSON.stringify(value, replace);
  } catch {
    return undefined;
  }
};

/** Replaces what is its own ancestor, and what cannot be read. */
const acyclic = (plain: (key: string, value: unknown) => unknown) => {
  const above: unknown[] = [];
  return function (this: unknown, key: string, value: unknown): unknown {
    while (above.length > 0 && above.at(-1) !== this) above.pop();
    if (typeof value !== 'object' || value === null) return plain(key, value);
    if (above.includes(value)) return '(a cycle)';
    above.push(value);
    return plain(key, value);
  };
};

/** Causes of causes that are shown. */
const mostCauses = 8;

/** The longest cause that is no error. */
const longestCause = 2_000;

/** An error for a person: its stack and causes, without keys and without further fields, which may hold secrets. */
const errorFields = (error: Error, depth = 0): object => {
  const { name, message, stack, cause } = error;
  const more = ['code', 'retryable', 'userMessage', 'status', 'requestId', 'partial'];
  const own = more.map((field) => [field, masked(Reflect.get(error, field))] as const);
  const below = cause === undefined || depth >= mostCauses ? {} : { cause: causeOf(cause, depth) };
  return {
    ...{ name, message: masked(message), ...Object.fromEntries(own) },
    ...(typeof stack === 'string' && { stack: masked(stack) }),
    ...below,
  };
};

const causeOf = (cause: unknown, depth: number): unknown =>
  cause instanceof Error
    ? errorFields(cause, depth + 1)
    : masked(messageOf(cause).slice(0, longestCause));

const masked = <T>(value: T): T | string =>
  typeof value === 'string' ? withoutKeys(value) : value;
