import { median } from '../median.js';
import type { AdapterRef } from './adapters.js';
import type { Bench } from './bench.js';

/** What is measured, and beside what. */
export type Subject = Pick<AdapterRef, 'name' | 'floor'>;

/** What came of all rounds of one adapter. */
export interface Outcome<T> {
  readonly adapter: Subject;
  /** One of each round; where it failed, those before. */
  readonly rounds: readonly T[];
  /** Why it failed. */
  readonly failure?: string;
}

/**
 * Measures all adapters in each round, every time in another order, so that what changes on the machine hits all alike. One
 * that fails is measured no more, and ends nothing.
 */
export const measureRounds = async <T, Of extends Subject = AdapterRef>(
  {
    adapters,
    rounds,
    onProgress,
  }: Pick<Bench, 'rounds' | 'onProgress'> & {
    readonly adapters: readonly Of[];
  },
  what: string,
  measureOne: (adapter: Of) => Promise<T>,
): Promise<readonly Outcome<T>[]> => {
  const results = new Map<Of, T[]>(adapters.map((adapter) => [adapter, []]));
  const failures = new Map<Of, string>();
  for (let round = 0; round < rounds; round += 1) {
    for (const adapter of inRound(adapters, round)) {
      if (failures.has(adapter)) continue;
      onProgress(`${what}, round ${round + 1} of ${rounds}: ${adapter.name}`);
      try {
        results.get(adapter)?.push(await measureOne(adapter));
      } catch (thrown) {
        failures.set(adapter, thrown instanceof Error ? thrown.message : String(thrown));
      }
    }
  }
  return adapters.map((adapter) => {
    const failure = failures.get(adapter);
    return { adapter, rounds: results.get(adapter) ?? [], ...(failure && { failure }) };
  });
};

/** Each round begins with the next one, and every other one goes backwards. */
export const inRound = <T>(all: readonly T[], round: number): readonly T[] => {
  const first = round % Math.max(1, all.length);
  const turned = [...all.slice(first), ...all.slice(0, first)];
  return round % 2 === 0 ? turned : turned.toReversed();
};

/** The median over all rounds. */
export const medianOf = <T>({ rounds }: Outcome<T>, pick: (result: T) => number): number =>
  median(rounds.map(pick));

/** The ratios of an adapter to its floor, each to that of the same round. Empty where the floor has failed. */
export const ratiosOf = <T>(
  outcome: Outcome<T>,
  all: readonly Outcome<T>[],
  pick: (result: T) => number,
): readonly number[] => {
  const floor = all.find(({ adapter }) => adapter.name === outcome.adapter.floor);
  if (floor?.failure !== undefined) return [];
  return outcome.rounds.flatMap((result, round) => {
    const least = floor?.rounds[round];
    return least === undefined ? [] : [pick(result) / pick(least)];
  });
};
