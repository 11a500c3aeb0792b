import { lstat } from 'node:fs/promises';
import type { ConfinedPath } from './confined-path.js';

/** A change of a file. */
export interface Change {
  readonly place: ConfinedPath;
  /** `undefined` if there is no such file. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Limits what tools add to a directory. What others remove later makes room again. */
export interface ChangeLimit {
  /** Rejects with a sentence for the model if there is no room for a change. */
  readonly check: (change: Change) => Promise<void>;
  /** Makes a change, which counts from its beginning. */
  readonly counted: (change: Change, make: () => Promise<void>) => Promise<void>;
}

/** How many files the tools of a directory may create. */
const maxCreated = 10_000;

interface Changed {
  readonly isNew: boolean;
  /** Before the first change. */
  readonly base: number;
  readonly bytes: number;
  /** How many changes of it are under way. */
  readonly changing: number;
}

/** Counts by changes, and looks at the files only if there is no room. */
export const createChangeLimit = (maxAddedBytes: number): ChangeLimit => {
  const changed = new Map<string, Changed>();
  let [added, created] = [0, 0];
  const put = (real: string, entry?: Changed): void => {
    const old = changed.get(real);
    added += growthOf(entry) - growthOf(old);
    created += Number(entry?.isNew === true) - Number(old?.isNew === true);
    if (entry === undefined) changed.delete(real);
    else changed.set(real, entry);
  };
  const assertRoom = ({ place: { real }, before, after }: Change): void => {
    const known = changed.get(real);
    if (known === undefined && before === undefined && created >= maxCreated) {
      throw new Error(`The tools have created ${maxCreated} files, which is the limit.`);
    }
    const [from, to] = [sizeIn(before), sizeIn(after)];
    const left = maxAddedBytes - added + growthOf(known) + (known?.base ?? from);
    if (to <= from || to <= left) return;
    throw new Error(
      `The files would grow by more than ${maxAddedBytes} bytes, which is the limit. Write up to ${Math.max(left, 0)} bytes, or first shorten files that you no longer need.`,
    );
  };
  const measure = async (): Promise<void> => {
    for (const [real, entry] of [...changed]) {
      const found = await lstat(real).catch(() => undefined);
      // A change may be under way.
      if (entry.changing > 0 || changed.get(real) !== entry) continue;
      put(real, found?.isFile() === true ? { ...entry, bytes: found.size } : undefined);
    }
  };
  return {
    check: async (change) => {
      try {
        assertRoom(change);
      } catch {
        await measure();
        assertRoom(change);
      }
    },
    counted: async (change, make) => {
      assertRoom(change);
      const { place, before, after } = change;
      const [from, to] = [sizeIn(before), sizeIn(after)];
      const known = changed.get(place.real) ?? {
        ...{ isNew: before === undefined, base: from, bytes: from, changing: 0 },
      };
      // A change may fail, and others of the same file be under way: until one succeeds, the larger size counts.
      const bytes = Math.max(known.bytes, to);
      put(place.real, { ...known, bytes, changing: known.changing + 1 });
      const end = (own: Partial<Changed>): void => {
        const { changing, ...now } = changed.get(place.real) ?? known;
        put(place.real, { ...now, ...own, changing: changing - 1 });
      };
      try {
        await make();
      } catch (error) {
        end({});
        throw error;
      }
      end({ bytes: to });
    },
  };
};

const growthOf = (
  { bytes, base }: Pick<Changed, 'bytes' | 'base'> = { bytes: 0, base: 0 },
): number => bytes - base;

const sizeIn = (text = ''): number => Buffer.byteLength(text);
