import {
  concatMap,
  defer,
  delay,
  finalize,
  from,
  isObservable,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  of,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type AgentEvent,
  inProcessMemory,
  type MemoryFactory,
  type Model,
  type ModelChunk,
  type ModelRequest,
  tool,
  type Tool,
} from '../../index.js';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
} from '../../layers/long-term-memory/index.js';
import { jsonSchema } from '../../schema/index.js';
import { finish } from '../../testing/index.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  type Journal,
  journal,
} from '../index.js';
import { type Cut, cutDriver } from './cut-driver.test-support.js';

/** What outlasts a process. */
export interface World {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  /** What tools have done outside, by idempotency keys. */
  readonly effects: string[];
  /** What models were asked. */
  readonly asked: ModelRequest[];
  /** What is remembered of users. */
  readonly longTerm: LongTermMemory;
  /** When the next process begins. */
  now: number;
}

export const createWorld = (): World => ({
  driver: inProcessCalls(),
  memory: inProcessMemory(),
  effects: [],
  asked: [],
  longTerm: inProcessLongTermMemory({ clock: { now: () => 0 } }),
  now: 0,
});

type Answer = readonly ModelChunk[] | Observable<ModelChunk>;

/** What an agent is made of in one process. */
export interface Process {
  readonly durable: Journal;
  readonly memory: MemoryFactory;
  readonly scheduler: VirtualTimeScheduler;
  /** A model that says what the function makes of the request, whichever process asks. Each chunk takes a millisecond. */
  readonly model: (answer: (request: ModelRequest) => Answer) => Model;
  /** A tool that does something outside, which takes it `ms`. */
  readonly effect: (name: string, policy?: Partial<Tool> & { readonly ms?: number }) => Tool;
  /** Does something outside, unless the process has ended. */
  readonly affect: (effect: string) => void;
  readonly longTerm: LongTermMemory;
}

/** What became of a process. */
export interface Life {
  readonly events: readonly AgentEvent[];
  readonly isDead: boolean;
  readonly error: unknown;
  /** What it held when all was over. */
  readonly held: Readonly<Record<'claims' | 'streams' | 'waits', number>>;
}

/** Runs something in a process of its own, in virtual time, to its end or until it is cut. */
export const live = async (
  world: World,
  cut: Cut | undefined,
  run: (process: Process) => Observable<AgentEvent>,
): Promise<Life> => {
  const scheduler = new VirtualTimeScheduler();
  scheduler.frame = world.now;
  const { driver, isDead, kill, held: claims } = cutDriver(world.driver, cut);
  const streams = { open: 0 };
  const events: AgentEvent[] = [];
  const end: { isOver: boolean; error?: unknown } = { isOver: false };
  const process = processOf(world, scheduler, isDead, () => counted(streams));
  const running = run({
    ...process,
    durable: journal(createCallStore(driver), { onUncertain: 'rerun' }),
  }).subscribe({
    next: (event) => {
      if (!isDead()) events.push(event);
    },
    error: (cause: unknown) => {
      end.error = cause;
      end.isOver = true;
    },
    complete: () => (end.isOver = true),
  });
  const isRunning = (): boolean => !end.isOver && !isDead();
  for (let idle = 0; idle < 30 && isRunning(); idle += 1) {
    while (isRunning() && step(scheduler)) idle = 0;
    // What is promised, such as the result of a tool.
    await Promise.resolve();
  }
  if (isRunning()) throw new Error('A call has come to no end.');
  world.now = scheduler.frame + 1_000;
  kill();
  running.unsubscribe();
  const held = { claims: claims(), streams: streams.open, waits: scheduler.actions.length };
  return { events, isDead: isDead(), error: end.error, held };
};

/** Does what is to be done next; false where nothing is. */
const step = (scheduler: VirtualTimeScheduler): boolean => {
  const action = scheduler.actions.shift();
  if (action === undefined) return false;
  scheduler.frame = action.delay;
  const failure: unknown = action.execute(action.state, action.delay);
  if (failure instanceof Error) throw failure;
  return true;
};

const counted =
  <T>(streams: { open: number }): MonoTypeOperatorFunction<T> =>
  (source$) =>
    defer(() => {
      streams.open += 1;
      return source$.pipe(finalize(() => (streams.open -= 1)));
    });

const processOf = (
  world: World,
  scheduler: VirtualTimeScheduler,
  isDead: () => boolean,
  tracked: <T>() => MonoTypeOperatorFunction<T>,
): Omit<Process, 'durable'> => {
  const affect = (effect: string): void => {
    if (!isDead()) world.effects.push(effect);
  };
  return {
    scheduler,
    affect,
    memory: (id) => {
      const memory = world.memory(id);
      return {
        ...memory,
        append$: (messages) => defer(() => (isDead() ? NEVER : memory.append$(messages))),
      };
    },
    longTerm: {
      ...world.longTerm,
      record$: (...given) =>
        defer(() => (isDead() ? NEVER : world.longTerm.record$(...given))).pipe(
          delay(1, scheduler),
        ),
      recall$: (...given) => world.longTerm.recall$(...given).pipe(delay(1, scheduler)),
    },
    model: (answer) => ({
      name: 'function',
      stream$: (request) =>
        defer(() => {
          if (!isDead()) world.asked.push(request);
          const said = answer(request);
          const chunk$ = isObservable(said) ? said : from([...said, used, finish()]);
          return chunk$.pipe(
            concatMap((chunk) => of(chunk).pipe(delay(1, scheduler))),
            tracked(),
          );
        }),
    }),
    effect: (name, { ms = 2, ...policy } = {}) => ({
      ...tool({
        name,
        description: name,
        input: jsonSchema({ type: 'object', properties: { to: { type: 'string' } } }),
        run: ({ to = '' }, { idempotencyKey }) => {
          affect(`${name} ${to} ${idempotencyKey}`);
          return of(`${name} ${to}.`).pipe(delay(ms, scheduler), tracked());
        },
      }),
      ...policy,
    }),
  };
};

const used: ModelChunk = { type: 'usage', usage: { inputTokens: 7, outputTokens: 3 } };
