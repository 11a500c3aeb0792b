import {
  createAgent,
  type InputMessage,
  type Layer,
  MillraceError,
  type Model,
  type Tool,
} from 'millrace';
import {
  type CallStore,
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
} from 'millrace/journal';
import {
  inProcessSessions,
  keepSessions,
  type KeptSession,
  type SessionStore,
} from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel } from 'millrace/testing';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  map,
  noop,
  type Observable,
  Subscription,
  VirtualTimeScheduler,
} from 'rxjs';
import { sleepLayer } from './sleep.js';
import { wake$, type WakeOptions } from './wake.js';

export const day = 86_400_000;

/** A clock that a test sets. */
export const createClock = () => {
  const scheduler = new VirtualTimeScheduler(undefined, 0);
  return {
    scheduler,
    /** Does all that is to happen until a time. */
    runTo: (at: number): void => {
      scheduler.schedule(noop, Math.max(0, at - scheduler.now()));
      scheduler.maxFrames = at;
      scheduler.flush();
    },
  };
};

/** Collects what an Observable emits, until it is unsubscribed. */
export const collect = <T>(source$: Observable<T>) => {
  const seen: T[] = [];
  const state = { isComplete: false };
  const subscription = source$.subscribe({
    next: (value) => seen.push(value),
    complete: () => (state.isComplete = true),
  });
  return { seen, state, stop: () => subscription.unsubscribe() };
};

interface Stores {
  readonly calls: CallStore;
  readonly sessionStore: SessionStore;
}

/** Stores that outlast the processes of a test, and the clock of all of them. */
export const createWorld = () => {
  const { scheduler, runTo } = createClock();
  const driver = inProcessCalls(() => scheduler.now());
  const store = createCallStore(driver, { scheduler });
  const sessionStore = inProcessSessions();
  /** A process with an agent that sleeps. */
  const start = (
    answers: readonly ScriptedAnswer[] | Model,
    {
      tools = [],
      use = [],
      stores,
      ...options
    }: WakeOptions & {
      readonly tools?: readonly Tool[];
      readonly use?: readonly Layer[];
      readonly stores?: Partial<Stores>;
    } = {},
  ) => {
    const { calls, sessionStore: kept } = { calls: store, sessionStore, ...stores };
    const model = 'stream$' in answers ? scriptedModel() : scriptedModel(...answers);
    const agent = createAgent({
      name: 'helper',
      model: 'stream$' in answers ? answers : model,
      tools,
      use: [sleepLayer(calls), ...use],
    });
    const users = keepSessions(agent, kept, { journal: journal(calls), scheduler });
    const running = new Subscription();
    const collected = <T>(source$: Observable<T>): readonly T[] => {
      const { seen, stop } = collect(source$.pipe(catchError(() => EMPTY)));
      running.add(stop);
      return seen;
    };
    const in$ = <T>(sessionId: string, work$: (session: KeptSession) => Observable<T>) =>
      users.open$(sessionId).pipe(concatMap(work$));
    return {
      model,
      users,
      notices: collected(wake$(calls, users, { scheduler, pollMs: 600_000, ...options })),
      /** The replies to a question, as they come. */
      ask: (sessionId: string, question: InputMessage | string, callId: string) =>
        collected(in$(sessionId, (it) => it.call$(question, { callId, scheduler }))),
      resume: (sessionId: string, callId: string) =>
        collected(in$(sessionId, (it) => it.resume$(callId, { scheduler }))),
      stop: () => running.unsubscribe(),
    };
  };
  return { scheduler, runTo, driver, store, sessionStore, start };
};

/** The stores of a process that ends after a number of writes. */
export const mortal = (
  { driver, sessionStore, scheduler }: ReturnType<typeof createWorld>,
  writes: number,
): Stores => {
  let left = writes;
  const written$ = <T>(write$: () => Observable<T>): Observable<T> =>
    defer(() => {
      left -= 1;
      if (left < 0) throw new MillraceError('store', 'The process has ended.');
      return write$();
    });
  const claim$: CallStoreDriver['claim$'] = (callId) =>
    driver
      .claim$(callId)
      .pipe(map(({ append$ }) => ({ append$: (records) => written$(() => append$(records)) })));
  return {
    calls: createCallStore({ ...driver, claim$ }, { scheduler }),
    sessionStore: {
      ...sessionStore,
      save$: (...state) => written$(() => sessionStore.save$(...state)),
    },
  };
};
