// The log of a root call, in columns: the chunks of a message take three numbers and their text each, and no objects.
import {
  type ChunkRun,
  isChunkRun,
  isDeltaKind,
  isMark,
  type LogItem,
  type Mark,
  type ShownEvent,
} from '../protocol.js';
import { countUpTo, type GrowingText, growingText } from './text.js';
import { createWholeRequests } from './whole-requests.js';

/** The chunks of one kind of one message, in columns of the same length. */
export interface ChunkStream {
  readonly key: string;
  /** The fields that its chunks share. */
  readonly head: Omit<ChunkRun, 'ats' | 'deltas'>;
  readonly text: GrowingText;
  readonly ats: readonly number[];
  readonly positions: readonly number[];
  /** The length of the text after each chunk. */
  readonly ends: readonly number[];
}

/** An entry of a log: an event, a mark or one chunk. */
export type Entry = { readonly position: number; readonly at: number } & (
  | { readonly type: 'event'; readonly event: ShownEvent }
  | { readonly type: 'mark'; readonly mark: Mark }
  | { readonly type: 'chunk'; readonly stream: ChunkStream; readonly index: number }
);

/** Derives something from a log, item by item. Times never decrease. */
export interface Fold {
  readonly event?: (event: ShownEvent, at: number, position: number) => void;
  readonly mark?: (mark: Mark, at: number, position: number) => void;
  /** The chunks `from` to `to` of a stream, that come in a row. */
  readonly chunks?: (stream: ChunkStream, from: number, to: number) => void;
}

/** A time without any entry. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** How much time the gaps before it take. */
  readonly before: number;
}

/** Entries have positions from 0. A chunk is an entry of its own. */
export interface Log {
  /** The number of entries. */
  readonly size: number;
  readonly startedAt: number;
  readonly lastAt: number;
  /** The longer times without entries, in order. */
  readonly gaps: readonly Gap[];
  append(items: readonly LogItem[]): void;
  entry(position: number): Entry | undefined;
  /** The time of an entry, or of the nearest one. */
  timeAt(position: number): number;
  /** How many entries there are until a time. */
  countAt(time: number): number;
  /** The items between two positions, for an export or another log. Runs are joined. */
  items(from?: number, to?: number): LogItem[];
}

const gapMs = 1000;

type Segment = { readonly start: number; readonly at: number } & (
  | { readonly type: 'event'; readonly event: ShownEvent }
  | { readonly type: 'mark'; readonly mark: Mark }
  | { readonly type: 'run'; readonly stream: OpenStream; readonly from: number; count: number }
);

interface OpenStream extends ChunkStream {
  readonly ats: number[];
  readonly positions: number[];
  readonly ends: number[];
}

export const createLog = (folds: readonly Fold[] = []): Log => {
  const [times, segments] = [createTimes(), createSegments()];
  const streamOf = createStreams();
  const whole = createWholeRequests();
  const appendRun = (run: ChunkRun): void => {
    if (run.ats.length === 0) return;
    const stream = streamOf(run);
    const from = stream.ats.length;
    const last = segments.last();
    const isSame = last?.type === 'run' && last.stream === stream;
    const open = isSame
      ? last
      : { type: 'run' as const, start: segments.size, at: 0, stream, from, count: 0 };
    run.ats.forEach((given, index) => {
      const at = times.next(given);
      if (!isSame && index === 0) segments.push({ ...open, at });
      extend(stream, run.deltas[index] ?? '', at, segments.grow());
    });
    const pushed = segments.last();
    if (pushed?.type === 'run') pushed.count += run.ats.length;
    for (const fold of folds) fold.chunks?.(stream, from, stream.ats.length);
  };
  const appendItem = (item: LogItem): void => {
    if (isChunkRun(item)) {
      appendRun(item);
      return;
    }
    const run = isMark(item) ? undefined : chunkRunOf(item);
    if (run !== undefined) {
      appendRun(run);
      return;
    }
    const at = times.next(item.at);
    const start = segments.grow();
    if (isMark(item)) {
      segments.push({ type: 'mark', start, at, mark: item });
      for (const fold of folds) fold.mark?.(item, at, start);
    } else {
      segments.push({ type: 'event', start, at, event: item });
      for (const fold of folds) fold.event?.(item, at, start);
    }
  };
  const { entry, timeAt, countAt, items } = segments;
  return {
    get size() {
      return segments.size;
    },
    get startedAt() {
      return segments.first()?.at ?? 0;
    },
    get lastAt() {
      return times.last;
    },
    gaps: times.gaps,
    append: (added) => {
      for (const item of added) appendItem(whole(item));
    },
    ...{ entry, timeAt, countAt, items },
  };
};

/** Returns the stream of a message, which its runs continue. */
const createStreams = () => {
  const streams = new Map<string, OpenStream>();
  return (run: ChunkRun): OpenStream => {
    const key = `${run.callId} ${run.messageId} ${run.kind} ${run.toolCall?.index ?? ''}`;
    const stream = streams.get(key) ?? newStream(key, run);
    streams.set(key, stream);
    return stream;
  };
};

const extend = (stream: OpenStream, delta: string, at: number, position: number): void => {
  stream.text.append(delta);
  stream.ats.push(at);
  stream.positions.push(position);
  stream.ends.push(stream.text.length);
};

/** Times that never go back, and the gaps between them. */
const createTimes = () => {
  const gaps: Gap[] = [];
  let last: number | undefined;
  return {
    gaps,
    get last() {
      return last ?? 0;
    },
    next: (given: number): number => {
      const at = Math.max(last ?? given, given);
      if (last !== undefined && at - last >= gapMs) {
        const gap = gaps.at(-1);
        const before = gap === undefined ? 0 : gap.before + gap.to - gap.from;
        gaps.push({ from: last, to: at, before });
      }
      last = at;
      return at;
    },
  };
};

/** Events, marks and runs of deltas, found by position and by time. */
const createSegments = () => {
  const segments: Segment[] = [];
  const starts: number[] = [];
  const times: number[] = [];
  let size = 0;
  const segmentAt = (position: number): Segment | undefined =>
    segments[countUpTo(starts, position) - 1];
  const reading: Pick<Log, 'entry' | 'timeAt' | 'countAt' | 'items'> = {
    entry: (position) => {
      const segment = position < 0 || position >= size ? undefined : segmentAt(position);
      if (segment === undefined) return undefined;
      if (segment.type !== 'run') return { ...segment, position };
      const index = segment.from + position - segment.start;
      const { stream } = segment;
      return { type: 'chunk', position, at: stream.ats[index] ?? segment.at, stream, index };
    },
    timeAt: (position) => {
      const segment = segmentAt(Math.min(Math.max(position, 0), size - 1));
      if (segment?.type !== 'run') return segment?.at ?? 0;
      return segment.stream.ats[segment.from + position - segment.start] ?? times.at(-1) ?? 0;
    },
    countAt: (time) => {
      const segment = segments[countUpTo(times, time) - 1];
      if (segment === undefined) return 0;
      if (segment.type !== 'run') return segment.start + 1;
      const { stream, from, count, start } = segment;
      return start + Math.min(count, countUpTo(stream.ats, time) - from);
    },
    items: (from = 0, to = size) => {
      const first = Math.max(0, countUpTo(starts, from) - 1);
      const last = countUpTo(starts, to - 1);
      return segments.slice(first, last).flatMap((segment) => itemsOf(segment, from, to));
    },
  };
  return {
    ...reading,
    get size() {
      return size;
    },
    first: () => segments[0],
    last: () => segments.at(-1),
    push: (segment: Segment): void => {
      segments.push(segment);
      starts.push(segment.start);
      times.push(segment.at);
    },
    /** Returns the position of the next item. */
    grow: (): number => {
      size += 1;
      return size - 1;
    },
  };
};

const newStream = (key: string, { ats: _, deltas: __, ...head }: ChunkRun): OpenStream => ({
  key,
  head,
  text: growingText(),
  ats: [],
  positions: [],
  ends: [],
});

const itemsOf = (segment: Segment, from: number, to: number): readonly LogItem[] => {
  const { start } = segment;
  if (segment.type === 'event') return start < from ? [] : [segment.event];
  if (segment.type === 'mark') return start < from ? [] : [segment.mark];
  const { stream } = segment;
  const begin = segment.from + Math.max(0, from - start);
  const end = segment.from + Math.min(segment.count, to - start);
  if (begin >= end) return [];
  const deltas = stream.ends.slice(begin, end).map((_, at) => deltaOf(stream, begin + at));
  return [{ ...stream.head, ats: stream.ats.slice(begin, end), deltas }];
};

/** One chunk of a stream. */
export const deltaOf = ({ text, ends }: ChunkStream, index: number): string =>
  text.slice(index === 0 ? 0 : (ends[index - 1] ?? 0), ends[index]);

/** The text of a stream as it was before a position. */
export const textUntil = ({ positions, ends }: ChunkStream, position: number): number => {
  const count = countUpTo(positions, position - 1);
  return count === 0 ? 0 : (ends[count - 1] ?? 0);
};

/** A chunk that came as an event, as a run of one. */
const chunkRunOf = (event: ShownEvent): ChunkRun | undefined => {
  switch (event.type) {
    case 'reasoningChunk':
    case 'summaryChunk':
    case 'planningChunk': {
      const { type, seq, callId, parentId, agent, iteration, messageId, kind, toolCall } = event;
      if (!isDeltaKind(kind)) return undefined;
      return {
        chunks: type,
        ...{ seq, callId, agent, iteration, messageId, kind },
        ...(parentId !== undefined && { parentId }),
        ...(toolCall !== undefined && { toolCall }),
        ats: [event.at],
        deltas: [event.delta],
      };
    }
    default:
      return undefined;
  }
};
