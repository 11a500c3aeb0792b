import { existsSync } from 'node:fs';
import { firstValueFrom, type SchedulerLike, timer } from 'rxjs';
import { statIfExists } from './file-system.js';
import { readSegment, type Segment, segmentNumbers, segmentPath } from './segments.js';

/**
 * Reads the segments after a number, in order. Waits for one that another process is creating, by default up to a
 * second: that process may have crashed.
 */
export type LaterSegments = (
  directory: string,
  number: number,
  patienceMs?: number,
) => Promise<readonly Segment[]>;

/** How many bytes of a segment count, according to the later segments that count; undefined if none of them lists it. */
export const endIn = (later: readonly Segment[], segment: number): number | undefined =>
  later.flatMap(({ ends }) => ends.filter(([number]) => number === segment)).at(-1)?.[1];

/**
 * Omits segments if a later one says that nothing in them counts: its writer has seen the file without a head, so the process that completed that head had lost the call.
 */
export const countedSegments = (segments: readonly Segment[]): readonly Segment[] => {
  const omitted = new Set<number>();
  const counted: Segment[] = [];
  for (const segment of [...segments].reverse()) {
    if (omitted.has(segment.number)) continue;
    counted.unshift(segment);
    for (const [number, bytes] of segment.ends) if (bytes === 0) omitted.add(number);
  }
  return counted;
};

/**
 * The segments after a number, in order. Those that are being created are missing. The head of the
 * newest was complete before a later one was started, whose writer therefore sees it.
 */
export const segmentsAfter = async (directory: string, than: number): Promise<FoundSegments> => {
  const numbers = (await segmentNumbers(directory)).filter((number) => number > than);
  const segments: Segment[] = [];
  // Sequentially, to stay below the limit of open files.
  for (const number of numbers) {
    const segment = await readSegment(directory, number);
    if (segment !== undefined) segments.push(segment);
  }
  const newest = numbers.at(-1);
  // A later one was started meanwhile, and decides: it may have been started before this head was complete.
  const hasNext = newest !== undefined && existsSync(segmentPath(directory, newest + 1));
  if (hasNext) return segmentsAfter(directory, than);
  return { segments, newest, isWhole: segments.at(-1)?.number === newest };
};

interface FoundSegments {
  readonly segments: readonly Segment[];
  readonly newest: number | undefined;
  /** Whether the newest one is among them. */
  readonly isWhole: boolean;
}

export const laterSegmentsOn =
  (scheduler: SchedulerLike): LaterSegments =>
  async (directory, than, patienceMs = 1_000) => {
    for (let tries = 0; ; tries += 1) {
      const { segments, newest, isWhole } = await segmentsAfter(directory, than);
      const isOver = isWhole || newest === undefined || tries * pollMs >= patienceMs;
      if (isOver || !(await isFresh(segmentPath(directory, newest), 2 * patienceMs))) {
        return countedSegments(segments);
      }
      await firstValueFrom(timer(pollMs, scheduler));
    }
  };

const pollMs = 20;

const isFresh = async (path: string, freshMs: number): Promise<boolean> => {
  const found = await statIfExists(path);
  return found === undefined || Math.abs(Date.now() - found.mtimeMs) < freshMs;
};
