import type { Bench } from '../bench.js';
import { type RunningLife, startLife } from '../driver/life.js';
import type { ErrandCall, Said } from '../life/said.js';

/** How two processes are set on the same calls. */
export interface ContestOptions {
  /** Names the calls. */
  readonly name: string;
  readonly rounds: number;
  /** Whether the process that has begun the calls is killed just before; else it gives them back. */
  readonly isKilled: boolean;
}

/** What came of a round: who has got the call, and with which codes the others were refused. */
export interface Round {
  readonly finished: number;
  readonly refusals: readonly string[];
}

/**
 * Begins calls in one process, which ends, and resumes them in two others at the same time. Nobody is answered before each call was refused to one of them: who has
 * it has it all the time.
 */
export const contest = async (
  { name, rounds, isKilled }: ContestOptions,
  bench: Bench,
): Promise<readonly Round[]> => {
  const { places, server } = bench;
  const place = await places.next();
  const calls = Array.from({ length: rounds }, (_, index): ErrandCall => ({
    callId: `${name}-${index}`,
    seed: 0,
    waits: true,
    mode: 'report',
  }));
  const changes = createChanges();
  const start = (nth: string, isFirst: boolean): RunningLife & { readonly life: string } => {
    const life = `${name}.${nth}`;
    const errand = { life, place, url: server.url, calls, isFirst };
    const running = startLife(errand, bench, (_, said) => changes.note(life, said));
    running.ended.then(
      ({ wrongs }) => changes.fail(wrongs),
      (error: unknown) => changes.fail([String(error)]),
    );
    return { life, ...running };
  };
  const isEach = (holds: (callId: string) => boolean) => () =>
    calls.every(({ callId }) => holds(callId));
  const arrived = (callId: string, life: string): boolean =>
    server.arrivals(callId).some((it) => it.life === life);

  const first = start('0', true);
  first.begin();
  await changes.until(isEach((callId) => arrived(callId, first.life)));
  if (isKilled) first.kill();
  else first.leave();
  await first.ended;

  const both = [start('1', false), start('2', false)];
  await changes.until(() => both.every(({ life }) => changes.saidBy(life).length > 0));
  for (const { begin } of both) begin();
  const isDecided = (callId: string): boolean =>
    both.some(({ life }) => hasFailed(callId, changes.saidBy(life)));
  await changes.until(isEach(isDecided));
  for (const { callId } of calls) server.release(callId);
  const lives = await Promise.all(both.map(({ ended }) => ended));
  const wrongs = lives.flatMap((life) => life.wrongs);
  if (wrongs.length > 0) throw new Error(wrongs.join('; '));
  return calls.map(({ callId }) => ({
    finished: lives.flatMap(({ outcomes }) => outcomes).filter((it) => it.callId === callId).length,
    refusals: lives
      .flatMap(({ failures }) => failures)
      .filter((it) => it.callId === callId)
      .map(({ code = 'no code', message }) => (code === 'conflict' ? code : message)),
  }));
};

/** Tells whether exactly one process has got the call, and the other one was refused with `conflict`. */
export const isFair = ({ finished, refusals }: Round): boolean =>
  finished === 1 && refusals.join() === 'conflict';

const hasFailed = (callId: string, said: readonly Said[]): boolean =>
  said.some((it) => it.type === 'failed' && it.callId === callId);

/** What processes have said, and who waits for it. */
const createChanges = () => {
  const all = new Map<string, readonly Said[]>();
  let look = (): void => undefined;
  let fail = (_: Error): void => undefined;
  return {
    note: (life: string, said: readonly Said[]): void => {
      all.set(life, said);
      look();
    },
    fail: (wrongs: readonly string[]): void => {
      if (wrongs.length > 0) fail(new Error(wrongs.join('; ')));
    },
    saidBy: (life: string): readonly Said[] => all.get(life) ?? [],
    /** Resolves when it holds; that is looked at with each thing that is said. */
    until: (holds: () => boolean): Promise<void> =>
      new Promise((resolve, reject) => {
        fail = reject;
        look = () => {
          if (holds()) resolve();
        };
        look();
      }),
  };
};
