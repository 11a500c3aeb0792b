// Where things are on the time axis, and which of them are shown: never more than the width has room for.
import type { Bar, Lane, Series } from './call-lanes.js';
import type { Gap, Log } from './log.js';
import { countUpTo } from './text.js';

/** How long an idle time is shown, in milliseconds, if idle times are compressed. */
const compressedMs = 250;

/** Converts times to milliseconds of the axis, which begins at 0 and may leave idle times out. */
export interface Axis {
  readonly length: number;
  toAxis(time: number): number;
  toTime(ms: number): number;
}

/** The axis of a log. With an offset, it begins later. */
export const axisOf = (log: Log, isCompressed: boolean, offset = 0): Axis => {
  const { startedAt, gaps } = log;
  const shownBefore = (index: number, { before }: Gap): number => before - index * compressedMs;
  const toAxis = (time: number): number => {
    const plain = time - startedAt + offset;
    const index = isCompressed ? lastIndex(gaps, (gap) => gap.from < time) : -1;
    const gap = gaps[index];
    if (gap === undefined) return plain;
    const length = gap.to - gap.from;
    const part = Math.min(1, (time - gap.from) / length);
    return plain - shownBefore(index, gap) - part * (length - compressedMs);
  };
  return {
    length: toAxis(log.lastAt),
    toAxis,
    toTime: (ms) => {
      const index = isCompressed ? lastIndex(gaps, (gap) => toAxis(gap.from) < ms) : -1;
      const gap = gaps[index];
      const plain = ms + startedAt - offset;
      if (gap === undefined) return plain;
      const begin = toAxis(gap.from);
      const length = gap.to - gap.from;
      const inside = ms - begin;
      return inside < compressedMs
        ? gap.from + (inside / compressedMs) * length
        : gap.to + inside - compressedMs;
    },
  };
};

/** The last of a list that fits, if all before it fit, too; -1 if none does. */
const lastIndex = <T>(list: readonly T[], fits: (item: T) => boolean): number => {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = list[middle];
    if (item !== undefined && fits(item)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

/** The part of the axis that is shown. */
export interface Window {
  readonly axis: Axis;
  /** Pixels for each millisecond of the axis. */
  readonly scale: number;
  /** The pixels of the axis that are shown. */
  readonly left: number;
  readonly right: number;
}

export const xOf = ({ axis, scale }: Window, time: number): number => axis.toAxis(time) * scale;

/** One marble, or a cluster of those that are too close to distinguish. */
export interface Marble {
  readonly key: string;
  readonly kind: string;
  /** The pixel of the axis: of the marble, or at which the cluster begins. */
  readonly x: number;
  /** The length of a cluster: it ends with its last marble, within its bin. */
  readonly width: number;
  readonly count: number;
  /** The first entry, and the last. */
  readonly position: number;
  readonly until: number;
}

const marbleGap = 9;
const clusterEdge = 3;

/**
 * The marbles of a window, in bins of `bin` pixels of the axis: bins do not move with the window. Looks at one marble a
 * bin, and jumps over the rest.
 */
export const marblesIn = (series: Series, window: Window, bin: number): readonly Marble[] => {
  const { ats, positions, kind } = series;
  const { axis, scale, left, right } = window;
  const indexAt = (x: number): number => countUpTo(ats, axis.toTime(x / scale) - 1e-6);
  const marbles: Marble[] = [];
  let at = indexAt(Math.floor(left / bin) * bin);
  while (at < ats.length) {
    const x = xOf(window, ats[at] ?? 0);
    if (x > right) break;
    const number = Math.floor(x / bin + 1e-9);
    const next = Math.max(at + 1, indexAt((number + 1) * bin));
    const count = next - at;
    const xs =
      count > bin / marbleGap + 1 ? [] : ats.slice(at, next).map((time) => xOf(window, time));
    const areApart =
      xs.length > 0 &&
      xs.every((it, index) => index === 0 || it - (xs[index - 1] ?? 0) >= marbleGap);
    if (areApart) {
      xs.forEach((own, index) => {
        const position = positions[at + index] ?? 0;
        marbles.push({
          key: `${kind} ${position}`,
          kind,
          x: own,
          width: 0,
          count: 1,
          position,
          until: position,
        });
      });
    } else {
      const begin = Math.max(number * bin + 0.5, x - clusterEdge);
      const end = xOf(window, ats[next - 1] ?? 0) + clusterEdge;
      const width = Math.max(8, Math.min(end, (number + 1) * bin - 0.5) - begin);
      marbles.push({
        ...{ key: `${kind} bin ${number}`, kind, x: begin, width, count },
        ...{ position: positions[at] ?? 0, until: positions[next - 1] ?? 0 },
      });
    }
    at = next;
  }
  return marbles;
};

/** The kind of a cluster of marbles of several kinds. */
export const mixed = 'mixed';

/** Joins clusters of a lane that would cover each other. Single marbles stay. */
export const joinClusters = (marbles: readonly Marble[]): readonly Marble[] => {
  const clusters = marbles.filter(({ count }) => count > 1).sort((a, b) => a.x - b.x);
  const joined: Marble[] = [];
  for (const cluster of clusters) {
    const last = joined.at(-1);
    if (
      last === undefined ||
      last.kind === cluster.kind ||
      cluster.x > last.x + last.width - 2 * clusterEdge - 1
    ) {
      joined.push(cluster);
      continue;
    }
    const end = Math.max(last.x + last.width, cluster.x + cluster.width);
    joined[joined.length - 1] = {
      ...{ key: `${mixed} ${last.key}`, kind: mixed, x: last.x, width: end - last.x },
      count: last.count + cluster.count,
      position: Math.min(last.position, cluster.position),
      until: Math.max(last.until, cluster.until),
    };
  }
  return [...joined, ...marbles.filter(({ count }) => count === 1)];
};

/** A bar as it is shown. */
export interface ShownBar {
  readonly bar: Bar;
  readonly index: number;
  readonly x: number;
  readonly width: number;
}

/** The bars of a window. Of bars in a row that are thinner than `thin` pixels, the first is shown. */
export const barsIn = (lane: Lane, window: Window, end: number, thin = 2): readonly ShownBar[] => {
  const { axis, scale, left, right } = window;
  const { bars, longest } = lane;
  const from = axis.toTime(left / scale) - longest;
  const first = lastIndex(bars, ({ start }) => start < from) + 1;
  const shown: ShownBar[] = [];
  let until = -Infinity;
  const show = (bar: Bar, index: number): void => {
    const x = xOf(window, bar.start);
    const to = xOf(window, bar.end ?? end);
    if (x > right || to < left || (to < until + thin && to - x < thin)) return;
    until = Math.max(until, to);
    shown.push({ bar, index, x, width: to - x });
  };
  // A bar that is still open may have begun any time ago.
  bars.slice(0, first).forEach((bar, index) => {
    if (bar.end === undefined) show(bar, index);
  });
  for (let index = first; index < bars.length; index += 1) {
    const bar = bars[index];
    if (bar === undefined || xOf(window, bar.start) > right) break;
    show(bar, index);
  }
  return shown;
};

/** A tick of the axis. */
export interface Tick {
  readonly x: number;
  readonly label: string;
}

const tickGap = 90;

/** Ticks at round times since the beginning, in a window. Idle times that are compressed have few. */
export const ticksIn = ({ axis, left, right, scale }: Window): readonly Tick[] => {
  const step = roundUp(tickGap / scale);
  const start = axis.toTime(0);
  const after = (x: number): number => Math.ceil((axis.toTime(x / scale) - start) / step - 1e-6);
  const ticks: Tick[] = [];
  let number = Math.max(0, after(left - tickGap));
  for (;;) {
    const x = axis.toAxis(start + number * step) * scale;
    if (x > right) return ticks;
    ticks.push({ x, label: durationText(number * step, step) });
    number = Math.max(number + 1, after(x + tickGap * 0.7));
  }
};

/** The next of 1, 2, 5, 10, 20 … */
export const roundUp = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return power * ([1, 2, 5].find((factor) => factor * power >= value) ?? 10);
};

/** A duration for people: `12 ms`, `3.4 s`, `2:05 min`. */
export const durationText = (ms: number, step = 0): string => {
  if (ms < 1000 && step < 1000) return `${Math.round(ms * 100) / 100} ms`;
  if (ms < 60_000) {
    const digits =
      step > 0 && step < 100
        ? 2
        : step >= 1000 || ms >= 10_000
          ? step > 0 && step < 1000
            ? 1
            : 0
          : 1;
    return `${(ms / 1000).toFixed(digits)} s`;
  }
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
};
