import type { Bench } from '../bench.js';
import { contest, type Round } from '../contest/contest.js';
import type { ErrandCall } from '../life/said.js';
import type { StoreName } from '../places/place.js';
import { type Seeded, seeded } from '../seeded.js';
import type { UncertainMode } from '../script/script-agent.js';
import type { Kill } from './live.js';
import { runTrial, type Trial } from './trial.js';

/** How a store is put to the test. */
export interface CrashOptions {
  readonly store: StoreName;
  /** Processes that are killed, at least. */
  readonly kills: number;
  readonly seed: number;
  /** Calls that two processes resume at the same time, half of them where the one before is killed. Default: 0. */
  readonly contests?: number;
  /** Trials at the same time: most of its time a trial waits for a lease. */
  readonly atOnce: number;
  /** Calls of a trial, in one process at the same time: a kill hits them all. Default: 2. */
  readonly callsPerTrial?: number;
  /** Is told what there is so far, after each trial. */
  readonly onProgress?: (soFar: Crashed) => void;
}

/** What came of a store. */
export interface Crashed {
  readonly store: StoreName;
  readonly trials: readonly Trial[];
  /** Two processes that resumed the same call at the same time. */
  readonly rounds: readonly Round[];
  /** From the beginning to the end, in milliseconds. */
  readonly ms: number;
}

const killsPerTrial = 4;
const modes: readonly UncertainMode[] = ['report', 'rerun', 'ask'];

/** Runs trials until so many processes were killed. The first one is not killed: it tells how many points there are. */
export const crashStore = async (
  {
    store,
    kills,
    seed,
    atOnce,
    callsPerTrial = 2,
    contests = 0,
    onProgress = () => undefined,
  }: CrashOptions,
  bench: Bench,
): Promise<Crashed> => {
  const startedAt = performance.now();
  const random = seeded(seed);
  const trials: Trial[] = [];
  const rounds: Round[] = [];
  const crashed = (): Crashed => ({
    store,
    trials: [...trials],
    rounds: [...rounds],
    ms: performance.now() - startedAt,
  });
  let begun = 0;
  // Those that are still to come are counted, so that there are not too many in the end.
  let booked = 0;
  const trial = async (points: number, planned: number): Promise<Trial> => {
    begun += 1;
    booked += planned;
    const name = `${store}-${begun}`;
    const calls = callsOf(name, begun, callsPerTrial, random);
    const isInterrupted = calls.some(({ interruptAt }) => interruptAt !== undefined);
    const deaths = killsIn(points, planned, isInterrupted, random);
    const done = await runTrial(
      { name, calls, kills: deaths, place: await bench.places.next() },
      bench,
    );
    booked += done.kills - planned;
    trials.push(done);
    onProgress(crashed());
    return done;
  };
  const { points } = await trial(0, 0);
  const work = async (): Promise<void> => {
    while (booked < kills) await trial(points, Math.min(killsPerTrial, kills - booked));
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  for (const isKilled of contests === 0 ? [] : [true, false]) {
    const name = `${store}-contest-${isKilled ? 'killed' : 'left'}`;
    rounds.push(...(await contest({ name, rounds: contests / 2, isKilled }, bench)));
  }
  return crashed();
};

const callsOf = (name: string, nth: number, count: number, random: Seeded): readonly ErrandCall[] =>
  Array.from({ length: count }, (_, index) => ({
    callId: `${name}-${index}`,
    seed: random.below(2 ** 31),
    ...kindOf(nth + index, random),
  }));

/** Every second one is in a session that is kept, and somebody interrupts about every fourth one. */
const kindOf = (
  nth: number,
  random: Seeded,
): Pick<ErrandCall, 'mode' | 'isKept' | 'interruptAt'> => ({
  mode: modes[nth % modes.length] ?? 'report',
  isKept: nth % 2 === 0,
  ...(random.below(4) === 0 ? { interruptAt: 1 + random.below(chunksOfCall) } : {}),
});

/** About as many as a model gives in a whole call. */
const chunksOfCall = 40;

/** Points within which a process starts, takes its calls over and reads what is written down. */
const earlyPoints = 6;

/** Spread over all that a trial does, one behind the other; but every third process is killed while it starts or goes on with what the one before has left, and the first one of a call that somebody interrupts when that is written down. */
const killsIn = (
  points: number,
  count: number,
  isInterrupted: boolean,
  random: Seeded,
): readonly Kill[] => {
  const at = Array.from({ length: count }, () => random.below(points)).toSorted((a, b) => a - b);
  return at.map((point, index) => ({
    atPoint:
      random.below(3) === 0
        ? 1 + random.below(earlyPoints)
        : Math.max(1, point - (at[index - 1] ?? 0)),
    laterMs: random.below(2) * random.below(6),
    atInterrupt: isInterrupted && index === 0,
  }));
};
