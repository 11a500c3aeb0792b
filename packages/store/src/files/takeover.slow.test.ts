import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { isMillraceError } from 'millrace';
import type { CallStoreDriver, Claim } from 'millrace/journal';
import fc from 'fast-check';
import {
  asyncScheduler,
  firstValueFrom,
  lastValueFrom,
  ReplaySubject,
  type SchedulerLike,
  toArray,
} from 'rxjs';
import { storedName } from '../stored-name.js';
import { expireLock } from './expire-lock.test-support.js';
import type { FileCallsOptions } from './file-calls.js';
import { loadPlayed, type PlayedProcess, playProcess } from './file-operations.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let fileCalls: (directory: string, options?: FileCallsOptions) => CallStoreDriver;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'takeover-'));
  ({ fileCalls } = await loadPlayed(() => import('./file-calls.js')));
});
// Locks that writers have left are released a moment later.
afterAll(() => rm(root, { recursive: true, maxRetries: 10 }));

/** A clock on which a minute passes in a moment. */
const hurried = {
  now: () => Date.now(),
  schedule: (...[work, delay = 0, state]: Parameters<typeof asyncScheduler.schedule>) =>
    asyncScheduler.schedule(work, delay / 1_000, state),
} as unknown as SchedulerLike;

const names = async (directory: string): Promise<readonly string[]> =>
  (await lastValueFrom(fileCalls(directory, { scheduler: hurried }).read$('c').pipe(toArray())))
    .flat()
    .map(({ name }) => name);

type Told = 'stored' | 'conflict' | 'not known';

/** A writer whose operations on the files of the call wait until the test lets them go on. */
const pausedWriter = (directory: string, name: string) => {
  const gate = { isOpen: true };
  const waits = { isDone: false };
  const waiting: (() => void)[] = [];
  const isOfCall = (operation: string): boolean => operation.includes(`/${storedName('c')}`);
  const played: PlayedProcess = {
    operations: [],
    pause: (operation) =>
      gate.isOpen || !isOfCall(operation) || operation.includes('.lock')
        ? Promise.resolve()
        : new Promise<void>((resolve) => void waiting.push(resolve)),
  };
  const told: { append?: Told } = {};
  const claim$ = new ReplaySubject<Claim>(1);
  const left: { leave?: () => void } = {};
  const claim = (): Promise<Claim> => {
    left.leave ??= (() => {
      const held = fileCalls(directory, { scheduler: hurried, leaseMs: 2_000 })
        .claim$('c')
        .subscribe(claim$);
      return () => held.unsubscribe();
    })();
    return firstValueFrom(claim$);
  };
  const append = async (): Promise<void> => {
    const record = { kind: 'step', name, seq: 1, text: '1' } as const;
    told.append = await lastValueFrom((await claim()).append$([record]), { defaultValue: 0 }).then(
      () => 'stored' as const,
      (error: unknown) => {
        if (!isMillraceError(error)) throw error;
        return error.code === 'conflict' ? 'conflict' : 'not known';
      },
    );
  };
  const step = (): void => waiting.shift()?.();
  return {
    name,
    told,
    claim: () => playProcess(played, claim),
    /** Claims the call, if it has not, and appends a record. A claim that fails appends nothing. */
    append: async () => {
      await playProcess(played, () => append().catch(() => undefined));
      waits.isDone = true;
    },
    isDone: () => waits.isDone,
    isWaiting: () => waiting.length > 0,
    step,
    close: () => {
      gate.isOpen = false;
    },
    open: () => {
      gate.isOpen = true;
      while (waiting.length > 0) step();
    },
    leave: () => left.leave?.(),
  };
};

const until = async (isIt: () => boolean): Promise<void> => {
  for (const from = Date.now(); !isIt() && Date.now() - from < 5_000;) await setImmediate();
};

/** Checks that what each writer was told agrees with what counts. */
const check = async (
  directory: string,
  writers: readonly ReturnType<typeof pausedWriter>[],
): Promise<void> => {
  const stored = await names(directory);
  expect(new Set(stored).size).toBe(stored.length);
  for (const { name, told } of writers) {
    if (told.append === 'stored') expect(stored).toContain(name);
    if (told.append === 'conflict') expect(stored).not.toContain(name);
    expect(told.append).not.toBe('not known');
  }
};

/** The first writer lists the segments, the third starts one and reads that of the second, and then the second completes its head. */
const besideTwo: [number, number][] = [
  [1, 8],
  [0, 5],
  [2, 7],
  [0, 0],
];

it('S7: what is confirmed to writers agrees with what counts, wherever a write and takeovers meet', async () => {
  const outcomes = new Set<string>();
  // A writer, and how many operations it makes in a row.
  const turn = fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 15 }));
  const steps = fc.array(turn, { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(steps, fc.nat({ max: 2 }), async (schedule, frozen) => {
      const directory = await mkdtemp(join(root, 'store-'));
      const lock = join(directory, `${storedName('c')}.lock`);
      const first = pausedWriter(directory, 'first');
      await first.claim();
      const takers = [pausedWriter(directory, 'second'), pausedWriter(directory, 'third')];
      const writers = [first, ...takers];
      writers.forEach(({ close }) => close());
      const work = [first.append()];
      await until(first.isWaiting);
      for (const taker of takers) {
        // The one before it does not write in time.
        await expireLock(lock);
        work.push(taker.append());
        await until(() => taker.isWaiting() || taker.isDone());
      }
      for (const index of schedule.flatMap(([writer, count]) =>
        Array<number>(count).fill(writer),
      )) {
        const writer = writers[index];
        await until(() => writer === undefined || writer.isWaiting() || writer.isDone());
        writer?.step();
      }
      // One of them stays where it is until the others are done.
      writers.forEach((writer, index) => {
        if (index !== frozen || frozen === 0) writer.open();
      });
      await work[0];
      writers.forEach(({ open }) => open());
      await Promise.all(work);
      await check(directory, writers);
      for (const { told } of writers) outcomes.add(String(told.append));
      const last = pausedWriter(directory, 'last');
      await expireLock(lock).catch(() => undefined);
      await last.append();
      expect(last.told.append).toBe('stored');
      await check(directory, [...writers, last]);
      [...writers, last].forEach(({ leave }) => leave());
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    }),
    { numRuns: 400, examples: [[besideTwo, 0]] },
  );
  expect(outcomes).toContain('stored');
  expect(outcomes).toContain('conflict');
});
