import { firstValueFrom, type SchedulerLike, timer } from 'rxjs';
import { statIn } from './failure.js';
import { readSegment, type Segment, segmentNumbers, segmentPath } from './segments.js';

/** Reads the segments behind one, in order. */
export type LaterSegments = (directory: string, than: number) => Promise<readonly Segment[]>;

/** How many bytes of a segment count, by those behind it; nothing, where none of them says it. The latest knows best: it may not have seen the one before it. */
export const endIn = (later: readonly Segment[], segment: number): number | undefined =>
  later.flatMap(({ ends }) => ends.filter(([number]) => number === segment)).at(-1)?.[1];

/** Makes what reads later segments. One that somebody is beginning just now is waited for, but not for long: that one may be gone. */
export const laterSegmentsOn =
  (scheduler: SchedulerLike): LaterSegments =>
  async (directory, than) => {
    for (let tries = 0; ; tries += 1) {
      const numbers = (await segmentNumbers(directory)).filter((number) => number > than);
      const segments: Segment[] = [];
      // One by one: there may be more of them than files may be open.
      for (const number of numbers) {
        const segment = await readSegment(directory, number);
        if (segment !== undefined) segments.push(segment);
      }
      const newest = numbers.at(-1);
      const isWhole = newest === undefined || segments.at(-1)?.number === newest;
      if (isWhole || tries === mostTries || !(await isFresh(segmentPath(directory, newest)))) {
        return segments;
      }
      await firstValueFrom(timer(lookAgainMs, scheduler));
    }
  };

const lookAgainMs = 20;
const mostTries = 50;
const freshMs = 2_000;

const isFresh = async (path: string): Promise<boolean> => {
  const found = await statIn(path);
  return found === undefined || Math.abs(Date.now() - found.mtimeMs) < freshMs;
};
