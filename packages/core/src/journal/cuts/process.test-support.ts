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
  type Journal,
  type MemoryFactory,
  type Model,
  type ModelChunk,
  type ModelRequest,
  tool,
  type Tool,
} from '../../index.js';
import { finish } from '../../testing/index.js';
import { type CallStoreDriver, createCallStore, inProcessCalls } from '../index.js';
import { type Cut, cutDriver } from './cut-driver.test-support.js';

/** What outlasts a process. */
export interface World {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  /** What tools have done outside, by idempotency keys. */
  readonly effects: string[];
  /** What models were asked. */
  readonly asked: ModelRequest[];
  readonly kept: Map<string, unknown>;
  /** When the next process begins. */
  now: number;
}

export const createWorld = (): World => ({
  driver: inProcessCalls(),
  memory: inProcessMemory(),
  effects: [],
  asked: [],
  kept: new Map(),
  now: 0,
});

type Answer = readonly ModelChunk[] | Observable<ModelChunk>;

/** What an agent is made of in one process. */
export interface Process {
  readonly journal: Journal;
  readonly memory: MemoryFactory;
  readonly scheduler: VirtualTimeScheduler;
  /** A model that says what the function makes of the request, whichever process asks. Each chunk takes a millisecond. */
  readonly model: (answer: (request: ModelRequest) => Answer) => Model;
  /** A tool that does something outside, which takes it `ms`. */
  readonly effect: (name: string, policy?: Partial<Tool> & { readonly ms?: number }) => Tool;
  /** The process has ended: nothing more is done outside. */
  readonly isDead: () => boolean;
  /** Does something outside, unless the process has ended. */
  readonly affect: (effect: string) => void;
  /** What outlasts the process, by its name. */
  readonly kept: <T>(name: string, make: () => T) => T;
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
  const { driver, isDead, end, held: claims } = cutDriver(world.driver, cut);
  const streams = { open: 0 };
  const events: AgentEvent[] = [];
  let error: unknown;
  let isOver = false;
  const process = processOf(world, scheduler, isDead, () => counted(streams));
  const running = run({ ...process, journal: createCallStore(driver) }).subscribe({
    next: (event) => {
      if (!isDead()) events.push(event);
    },
    error: (cause: unknown) => {
      error = cause;
      isOver = true;
    },
    complete: () => (isOver = true),
  });
  for (let idle = 0; idle < 30 && !isOver && !isDead(); idle += 1) {
    while (!isOver && !isDead() && step(scheduler)) idle = 0;
    // What is promised, such as the result of a tool.
    await Promise.resolve();
  }
  if (!isDead() && !isOver) throw new Error('A call has come to no end.');
  world.now = scheduler.frame + 1_000;
  end();
  running.unsubscribe();
  const held = { claims: claims(), streams: streams.open, waits: scheduler.actions.length };
  return { events, isDead: isDead(), error, held };
};

/** Does what is to be done next; false where nothing is. */
const step = (scheduler: VirtualTimeScheduler): boolean => {
  const action = scheduler.actions.shift();
  if (action === undefined) return false;
  scheduler.frame = action.delay;
  const failure: unknown = action.execute(action.state, action.delay);
  if (failure !== undefined) throw failure as Error;
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
): Omit<Process, 'journal'> => {
  const affect = (effect: string): void => {
    if (!isDead()) world.effects.push(effect);
  };
  return {
    scheduler,
    isDead,
    affect,
    memory: (id) => {
      const memory = world.memory(id);
      return {
        ...memory,
        append$: (messages) => defer(() => (isDead() ? NEVER : memory.append$(messages))),
      };
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
        input: { type: 'object', properties: { to: { type: 'string' } } } as const,
        run: ({ to = '' }, { idempotencyKey }) => {
          affect(`${name} ${to} ${idempotencyKey}`);
          return of(`${name} ${to}.`).pipe(delay(ms, scheduler), tracked());
        },
      }),
      ...policy,
    }),
    kept: <T>(name: string, make: () => T): T => {
      if (!world.kept.has(name)) world.kept.set(name, make());
      return world.kept.get(name) as T;
    },
  };
};

const used: ModelChunk = { type: 'usage', usage: { inputTokens: 7, outputTokens: 3 } };
