import type { Observable } from 'rxjs';
import { type Seeded, seeded } from '../seeded.js';
import type { Fleet, FleetWorker } from './fleet.js';
import { later } from './lead-lines.js';

/** The disturbances of workers. */
export interface Disturbances {
  kills: number;
  stops: number;
  drains: number;
}

export interface DisturbOptions {
  readonly seed: number;
  /** The number of workers. */
  readonly processes: number;
  readonly leaseMs: number;
  /** Ends it. */
  readonly done$: Observable<unknown>;
  readonly onDown: (worker: FleetWorker) => void;
  /** The disturbances so far. */
  readonly counts: Disturbances;
  /** The mean time between two disturbances, in milliseconds. */
  readonly everyMs: number;
}

/**
 * Kills, stops and drains workers at random, and starts others, until it is done. One worker stays ready, except when all are killed.
 * All that it has stopped run again then.
 */
export const disturb = async (fleet: Fleet, options: DisturbOptions): Promise<void> => {
  const { processes, leaseMs, done$, onDown, counts, everyMs } = options;
  const random = seeded(options.seed ^ 0x5eed);
  const done = new AbortController();
  const ending = done$.subscribe({
    next: () => done.abort(),
    error: () => done.abort(),
  });
  const waits: Promise<unknown>[] = [];
  const ready = (): readonly FleetWorker[] =>
    fleet.workers.filter(({ state }) => state === 'ready');
  const refill = (): void => {
    const alive = fleet.workers.filter(({ state }) => state === 'ready' || state === 'starting');
    for (let count = alive.length; count < processes; count += 1) fleet.start();
  };
  const kill = (worker: FleetWorker): void => {
    counts.kills += 1;
    onDown(worker);
    fleet.kill(worker);
  };
  const stop = async (worker: FleetWorker, isCut: boolean, ms: number): Promise<void> => {
    counts.stops += 1;
    await fleet.stop(worker, isCut);
    if (isCut) onDown(worker);
    await later(ms, done$);
    fleet.go(worker);
  };
  try {
    for (;;) {
      // All is drawn in each round: what the machine makes of one leaves the next ones as they are.
      const round = roundOf(random, everyMs);
      await later(round.waitMs, done$);
      if (done.signal.aborted) break;
      refill();
      const candidates = ready();
      const target = candidates[Math.floor(round.target * candidates.length)];
      // The server has connections for one more worker.
      const isCrowded = fleet.workers.some(
        ({ state }) => state === 'stopped' || state === 'draining',
      );
      if (target === undefined) continue;
      if (round.deed === 'killAll') fleet.workers.filter(isUp).forEach(kill);
      else if (candidates.length < 2) continue;
      else if (round.deed === 'kill' || isCrowded) kill(target);
      else if (round.deed === 'drain') {
        counts.drains += 1;
        fleet.drain(target);
      } else waits.push(stop(target, round.deed === 'cut', leaseMs + round.extraMs));
      await later(round.pauseMs, done$);
      refill();
    }
    await Promise.all(waits);
  } finally {
    ending.unsubscribe();
  }
  fleet.workers.forEach((worker) => fleet.go(worker));
  refill();
};

const isUp = ({ state }: FleetWorker): boolean => state === 'ready' || state === 'starting';

const roundOf = (random: Seeded, everyMs: number) => ({
  waitMs: everyMs / 4 + random.below(everyMs),
  pauseMs: random.below(everyMs / 2),
  deed: deedOf(random.below(20)),
  target: random.next(),
  extraMs: 500 + random.below(2_000),
});

const deedOf = (drawn: number): 'kill' | 'killAll' | 'drain' | 'stop' | 'cut' => {
  if (drawn === 0) return 'killAll';
  if (drawn <= 2) return 'drain';
  if (drawn === 3) return 'stop';
  return drawn <= 5 ? 'cut' : 'kill';
};
