import { expect } from '@jest/globals';
import { defer, EMPTY, lastValueFrom, of, repeat, VirtualTimeScheduler } from 'rxjs';
import type { Agent, AgentEvent, CallOptions, Input, ResumeOptions } from '../../index.js';
import type { LongTermMemory } from '../../long-term-memory/index.js';
import { verifyEvents } from '../../testing/index.js';
import { attach$, createCallStore } from '../index.js';
import type { Cut } from './cut-driver.test-support.js';
import { createWorld, type Life, live, type Process, type World } from './process.test-support.js';

/** A call that is cut. */
export interface SetUp {
  /** Makes the agent, as each process does. */
  readonly agent: (process: Process) => Agent;
  readonly input?: Input;
  /** What the call has of its own, and is given again. */
  readonly options?: (process: Process) => CallOptions & ResumeOptions;
  /** It is none of a session. Default: false. */
  readonly isBare?: boolean;
  /** Calls of models that can be under way at once. Default: 1. */
  readonly atOnce?: number;
  /** Calls that were made before, in the same session. Default: none. */
  readonly before?: readonly Input[];
}

const callId = 'c';

/** What is known of a call when it is over. */
interface Outcome {
  readonly reply: unknown;
  readonly messages: unknown;
  readonly effects: readonly string[];
  readonly told: readonly string[];
  readonly asked: number;
  readonly memories: unknown;
}

/** Makes the call in a world, and cuts it where it is said. */
const called = async (world: World, setUp: SetUp, cut?: Cut): Promise<Life> => {
  const { before = [], input = 'Go on.' } = setUp;
  for (const [index, earlier] of before.entries()) {
    const over = await live(world, undefined, (process) =>
      setUp
        .agent(process)
        .session('s')
        .stream$(earlier, { callId: `before-${index}`, ...own(setUp, process) }),
    );
    expect(over.error).toBe(undefined);
  }
  world.asked.length = 0;
  return live(world, cut, (process) => {
    const agent = setUp.agent(process);
    const options = { callId, ...own(setUp, process) };
    return setUp.isBare === true
      ? agent.stream$(input, options)
      : agent.session('s').stream$(input, options);
  });
};

const own = ({ options }: SetUp, process: Process) => ({
  scheduler: process.scheduler,
  ...options?.(process),
});

const resumed = (world: World, setUp: SetUp, cut?: Cut): Promise<Life> =>
  live(world, cut, (process) =>
    setUp.agent(process).resumeStream$(callId, own(setUp, process)).pipe(verifyEvents()),
  );

const written = (world: World) => lastValueFrom(world.driver.read$(callId), { defaultValue: [] });

const hasBegun = async (world: World): Promise<boolean> =>
  (await written(world)).some(({ name }) => name === `${callId}/call`);

/** What an event says, wherever and whenever it comes, and whatever attempt it is of. */
const plain = (value: unknown): string =>
  JSON.stringify(value, (key, part: unknown) =>
    ['at', 'seq', 'ms', 'elapsedMs', 'createdAt'].includes(key) ? undefined : part,
  ).replaceAll(/~\d+/gu, '');

const outcomeOf = async (world: World, { events, error }: Life): Promise<Outcome> => {
  const last = events.at(-1);
  const messages = await lastValueFrom(world.memory('s').load$());
  const told = (await written(world)).filter(({ kind }) => kind === 'event');
  const end = last?.type === 'postCall' ? last.reply : (error ?? 'none');
  return {
    reply: JSON.parse(plain(error instanceof Error ? String(error) : end)),
    messages: JSON.parse(plain(messages)),
    effects: world.effects,
    told: told.map(({ text }) => plain(JSON.parse(text))),
    asked: world.asked.length,
    memories: await memoriesIn(world),
  };
};

/** What is remembered of a user, where anything can be. */
const memoriesIn = async ({ kept }: World): Promise<unknown> => {
  const memory = kept.get('memories') as LongTermMemory | undefined;
  if (memory === undefined) return undefined;
  const all$ = memory.recall$({ userId: 'ann' }, { text: '', limit: 99 });
  return JSON.parse(plain(await lastValueFrom(all$)));
};

/** Follows the call from its beginning, through all processes: also behind an error, which another process may have gone on from. */
const follow = (world: World): { readonly seen: AgentEvent[]; readonly leave: () => void } => {
  const seen: AgentEvent[] = [];
  const store = createCallStore(world.driver);
  const scheduler = new VirtualTimeScheduler();
  const follows = defer(() =>
    attach$(store, callId, { waitMs: 1, scheduler, afterSeq: seen.at(-1)?.seq ?? 0 }),
  )
    .pipe(repeat({ delay: () => (seen.at(-1)?.type === 'error' ? of(true) : EMPTY) }))
    .subscribe({
      next: (event) => seen.push(event),
      error: (error: unknown) => {
        throw error;
      },
    });
  return { seen, leave: () => follows.unsubscribe() };
};

const nothing = { claims: 0, streams: 0, waits: 0 };

/** Cuts a call once or more, resumes it to its end, and holds that nothing is lost, and nothing done twice. */
const heals = async (setUp: SetUp, whole: Outcome, cuts: readonly Cut[]): Promise<void> => {
  const world = createWorld();
  const where = `cut ${cuts.map(({ how, records }) => `${how} ${records}`).join(', ')}`;
  const [first, ...others] = cuts;
  const reader = follow(world);
  const lives = [await called(world, setUp, first)];
  if (!(await hasBegun(world))) {
    reader.leave();
    return;
  }
  for (const cut of others) lives.push(await resumed(world, setUp, cut));
  const last = await resumed(world, setUp);
  const outcome = await outcomeOf(world, last);
  reader.leave();
  const records = await written(world);
  const told = records.filter(({ kind }) => kind === 'event');
  const uncertain = told.flatMap(({ name, text }) =>
    name === 'uncertain' ? [(JSON.parse(text) as { toolUse: { id: string } }).toolUse.id] : [],
  );
  const steps = records.flatMap(({ kind, name }) => (kind === 'step' ? [name] : []));
  expect({
    where,
    reply: outcome.reply,
    messages: outcome.messages,
    memories: outcome.memories,
    effects: [...new Set(outcome.effects)].sort(),
    twice: more(outcome.effects, whole.effects).filter(
      (effect) => !uncertain.some((id) => effect.includes(id)),
    ),
    lost: more(whole.told, outcome.told),
    extra: more(outcome.told, whole.told).filter(isToldOnce),
    numbers: told.map(({ seq }) => seq),
    steps: [...new Set(steps)],
    held: [...lives, last].map(({ held }) => held),
    seen: reader.seen.map(({ seq }) => seq),
  }).toEqual({
    where,
    reply: whole.reply,
    messages: whole.messages,
    memories: whole.memories,
    effects: [...new Set(whole.effects)].sort(),
    twice: [],
    lost: [],
    extra: [],
    numbers: told.map((_, index) => index + 1),
    steps,
    held: [...lives, last].map(() => nothing),
    seen: told.map(({ seq }) => seq),
  });
  expect([where, outcome.asked - whole.asked <= cuts.length * (setUp.atOnce ?? 1)]).toEqual([
    where,
    true,
  ]);
};

/** Those of some that are not among others, or not as often. */
const more = (some: readonly string[], others: readonly string[]): readonly string[] => {
  const left = new Map<string, number>();
  for (const it of others) left.set(it, (left.get(it) ?? 0) + 1);
  return some.filter((it) => {
    const count = left.get(it) ?? 0;
    left.set(it, count - 1);
    return count <= 0;
  });
};

/** What no step tells, which would be told again where that is begun again. */
const isToldOnce = (event: string): boolean =>
  /^\{"type":"(?:preCall|postCall|messages\w+|retrieved|recalled|steered)"/u.test(event) ||
  /^\{"type":"stateChanged".*"name":"plan"/u.test(event);

/** Runs a call without a cut, then cuts it at every record, in each way, and some of these once more. */
export const healsFrom = async (setUp: SetUp): Promise<void> => {
  const world = createWorld();
  const life = await called(world, setUp);
  const whole = await outcomeOf(world, life);
  expect(life.held).toEqual(nothing);
  if (process.env['SHOW']) console.log(JSON.stringify(whole, null, 1));
  const { length } = await written(world);
  for (let records = 1; records <= length; records += 1) {
    for (const how of ['killed', 'untold', 'full'] as const) {
      await heals(setUp, whole, [{ how, records }]);
    }
    const again = 1 + ((records * 7) % length);
    await heals(setUp, whole, [
      { how: 'killed', records },
      { how: records % 2 === 0 ? 'untold' : 'killed', records: again },
    ]);
  }
};
