import { type DbosEngine, openDbos } from '@millrace/dbos';
import {
  firstValueFrom,
  lastValueFrom,
  map,
  merge,
  type Observable,
  of,
  ReplaySubject,
  take,
} from 'rxjs';
import { startPostgres } from '@millrace/postgres-server';
import { bundleLife } from '../driver/bundle-life.js';
import { startEffectServer } from '../effects/effect-server.js';
import { checkFleet, type FleetVerdict } from './check-fleet.js';
import { type Disturbances, disturb } from './disturb.js';
import { openFleet } from './fleet.js';
import { linesOf } from './fleet-plan.js';
import { hasEnded, later, leadLine, type LedCall, type LedLine } from './lead-lines.js';
import { engineOptions } from './orders.js';

export interface FleetOptions {
  readonly seed: number;
  readonly calls: number;
  readonly processes: number;
  /** How long workers are disturbed, in milliseconds. */
  readonly disturbMs: number;
  /** The mean time between two disturbances, in milliseconds. Default: 1,000. */
  readonly everyMs?: number;
  /** Calls that have not ended by then are wrong, in milliseconds. Default: two minutes after the disturbances. */
  readonly limitMs?: number;
  readonly toolMs?: readonly [number, number];
  readonly chunkMs?: number;
  readonly onProgress?: (soFar: FleetProgress) => void;
  /** Ends it early: all that has ended is checked. */
  readonly cut$?: ReplaySubject<void>;
}

export interface FleetProgress extends Readonly<Disturbances> {
  readonly ended: number;
  readonly ms: number;
}

/** The result of a run. */
export interface FleetRun extends FleetProgress {
  readonly isCut: boolean;
  readonly recovered: number;
  readonly verdict: FleetVerdict;
  /** From the moment in which a worker was gone until each of its calls did something new, in milliseconds. */
  readonly resumeMs: readonly number[];
}

const leaseMs = 1_500;

/** Starts calls, disturbs the workers that run them, and checks the end state. */
export const runFleet = async (options: FleetOptions): Promise<FleetRun> => {
  const { seed, calls, processes, disturbMs, everyMs = 1_000 } = options;
  const { limitMs = disturbMs + 120_000, chunkMs = 8, toolMs = [50, 300] } = options;
  const { onProgress = () => undefined, cut$ = new ReplaySubject<void>(1) } = options;
  const closings: (() => Promise<unknown>)[] = [];
  const startedAt = performance.now();
  try {
    const program = await bundleLife('fleet/worker.js');
    closings.push(() => program.remove());
    const database = await startPostgres();
    closings.push(() => database.stop());
    const server = await startEffectServer(seed);
    closings.push(() => server.close());
    const schema = `fleet_${Date.now().toString(36)}`;
    const engine = openDbos(database.url, engineOptions({ schema, leaseMs }));
    closings.push(() => lastValueFrom(engine.close$(), { defaultValue: undefined }));
    const fleet = openFleet(program.path, {
      url: database.url,
      schema,
      leaseMs,
      recoverMs: 500,
      effectsUrl: server.url,
      // Few: what is killed has to be done again.
      concurrency: 4,
      chunkMs,
      toolMs,
    });
    process.once('exit', fleet.abandon);
    closings.push(async () => {
      await fleet.close();
      process.off('exit', fleet.abandon);
    });
    for (let count = 0; count < processes; count += 1) fleet.start();

    const counts: Disturbances = { kills: 0, stops: 0, drains: 0 };
    const resumes = createResumes();
    const ended: LedCall[] = [];
    const soFar = (): FleetProgress => ({
      ...counts,
      ended: ended.filter(hasEnded).length,
      ms: performance.now() - startedAt,
    });
    const allEnded$ = new ReplaySubject<void>(1);
    const timeUp$ = new ReplaySubject<void>(1);
    const over$ = merge(timeUp$, cut$).pipe(take(1));
    const lines = linesOf({ seed, calls, spreadMs: disturbMs * 0.9 });
    const led = lines.map((line) =>
      leadLine(line, {
        engine,
        cut$: over$,
        onEvent: resumes.see,
        onEnded: (call) => {
          ended.push(call);
          onProgress(soFar());
        },
      }),
    );
    const limit = setTimeout(() => timeUp$.next(), limitMs);
    const quietAt$ = new ReplaySubject<void>(1);
    const quiet = setTimeout(() => quietAt$.next(), disturbMs);
    const disturbed = disturb(fleet, {
      seed,
      processes,
      leaseMs,
      everyMs,
      counts,
      done$: merge(quietAt$, allEnded$, cut$, timeUp$).pipe(take(1)),
      onDown: (worker) => resumes.down(worker.running),
    });
    let ledLines: readonly LedLine[];
    try {
      ledLines = await Promise.all(led);
      allEnded$.next();
      await disturbed;
    } finally {
      clearTimeout(limit);
      clearTimeout(quiet);
    }
    const isCut = await hasEmitted(cut$);
    await settled(engine, ledLines, over$);
    await fleet.close();
    const verdict = await checkFleet({ lines: ledLines, engine, server, fleet, isCut });
    return {
      ...soFar(),
      isCut,
      recovered: fleet.recovered,
      verdict,
      resumeMs: resumes.all,
    };
  } finally {
    for (const close of closings.toReversed()) await close();
  }
};

/** The engine records the end of a call a moment after the call has ended. */
const settled = async (
  engine: DbosEngine,
  lines: readonly LedLine[],
  cut$: Observable<unknown>,
): Promise<void> => {
  const calls = lines.flatMap((line) => line.calls).filter(hasEnded);
  for (const { callId } of calls.flatMap(({ parts }) => parts)) {
    for (let looks = 0; looks < 300; looks += 1) {
      const { status } = await firstValueFrom(engine.find$(callId));
      if (status !== 'running') break;
      await later(100, cut$);
    }
  }
};

const hasEmitted = (source$: Observable<unknown>): Promise<boolean> =>
  firstValueFrom(merge(source$.pipe(map(() => true)), of(false)));

/** Measures how long the calls of a worker that is gone wait for another one. */
const createResumes = () => {
  const waiting = new Map<string, number>();
  const all: number[] = [];
  return {
    all,
    down: (callIds: Iterable<string>): void => {
      for (const callId of callIds) if (!waiting.has(callId)) waiting.set(callId, Date.now());
    },
    see: (partId: string, { at, type }: { readonly at: number; readonly type: string }): void => {
      const since = waiting.get(partId);
      // Some events of the worker that is gone arrive later.
      if (since === undefined || at <= since || type === 'stepReplayed') return;
      waiting.delete(partId);
      all.push(at - since);
    },
  };
};
