import {
  approval,
  createAgent,
  type Message,
  type Model,
  suspend,
  textOf,
  tool,
  type Agent,
  type AgentEvent,
  type EventOf,
} from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import {
  exhaustMap,
  filter,
  firstValueFrom,
  from,
  lastValueFrom,
  type Observable,
  Subscription,
  throwError,
  timer,
} from 'rxjs';
import { awaitDecision } from './messages.js';
import type { DbosEngine, DbosOptions } from './engine.js';
import { openDbos } from './open-dbos.js';

/** Opens engines on a server of its own, on one pair of schemas unless told otherwise. */
export interface Engines {
  readonly server: TestServer;
  open(options?: DbosOptions): DbosEngine;
  /** Subscribes until `close`. */
  keep(running$: Observable<unknown>): void;
  /** Ends what runs, and closes the engines. */
  close(): Promise<void>;
  stop(): Promise<void>;
}

export const startEngines = async (): Promise<Engines> => {
  const server = await startPostgres();
  const engines: DbosEngine[] = [];
  const failures: unknown[] = [];
  let running = new Subscription();
  const close = async (): Promise<void> => {
    running.unsubscribe();
    running = new Subscription();
    for (const engine of engines.splice(0)) await done(engine.close$());
    if (failures.length > 0) throw failures.splice(0)[0];
  };
  return {
    server,
    open: (options = {}) => {
      const engine = openDbos(server.url, {
        ...options,
        store: { leaseMs: 5_000, ...options.store },
      });
      engines.push(engine);
      return engine;
    },
    keep: (running$) => {
      running.add(running$.subscribe({ error: (error: unknown) => failures.push(error) }));
    },
    close,
    stop: async () => {
      await close();
      await server.stop();
    },
  };
};

/** Resolves when it completes. */
export const done = (work$: Observable<unknown>): Promise<unknown> =>
  lastValueFrom(work$, { defaultValue: undefined });

/** Waits for an event of a call. */
export const until = <Type extends AgentEvent['type']>(
  engine: DbosEngine,
  callId: string,
  type: Type,
): Promise<EventOf<Type>> =>
  firstValueFrom(
    engine.attach$(callId).pipe(filter((event): event is EventOf<Type> => event.type === type)),
  );

/** Waits until DBOS knows that a call is over, which is a moment after its last event. */
export const over = (engine: DbosEngine, callId: string): Promise<unknown> =>
  firstValueFrom(
    timer(0, 20).pipe(
      exhaustMap(() => engine.find$(callId)),
      filter(({ status }) => !['delayed', 'queued', 'running'].includes(status)),
    ),
  );

export const replyText = async (engine: DbosEngine, callId: string): Promise<string> =>
  textOf(await firstValueFrom(engine.reply$(callId)));

/**
 * A model that does what the last user message says: `use <tool>` calls a tool, once, `forever` calls the tool `wait`
 * again and again, `fail` fails; anything else is answered with all user messages so far, and the tool results.
 */
const obedient = (says: string): Model => ({
  name: 'obedient',
  stream$: ({ messages }) => {
    const said = messages.filter(({ role }) => role === 'user').map((message) => textOf(message));
    const results = messages.flatMap((message) =>
      message.role === 'tool' ? resultsIn(message) : [],
    );
    const order = said.at(-1) ?? '';
    const isUsed = messages.at(-1)?.role === 'tool';
    if (order === 'fail') return throwError(() => new Error('The model is broken.'));
    if (order === 'forever') return from([toolCall('pause'), finish()]);
    const [, name] = /^use (\w+)/.exec(order) ?? [];
    if (name !== undefined && !isUsed) return from([toolCall(name), finish()]);
    const answer = [...said, ...results].join(' | ');
    return from([text(says === '' ? answer : `${says}: ${answer}`), finish()]);
  },
});

const resultsIn = (message: Extract<Message, { role: 'tool' }>): readonly string[] =>
  message.content.map((block) => textOf(block));

/** An agent with tools for every need of these tests. */
export const clerk = (name = 'clerk', says = ''): Agent => {
  const plain = { description: 'For tests.' };
  return createAgent({
    name,
    model: obedient(says),
    tools: [
      tool({ ...plain, name: 'look', run: () => 'seen' }),
      tool({ ...plain, name: 'sign', run: () => suspend({ paper: 'lease' }) }),
      tool({ ...plain, name: 'pay', run: () => 'paid' }),
      tool({
        ...plain,
        name: 'pause',
        idempotent: true,
        run: (_input, { signal }) => paused(signal),
      }),
    ],
    use: [
      approval((request) => (request.tool === 'pay' ? awaitDecision(request) : true), {
        parallel: true,
      }),
    ],
    limits: { maxIterations: 1_000 },
  });
};

const paused = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve('rested'), 40);
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
