import { type Agent, type CallOptions, type Layer, MillraceError, wrapAgent } from '@millrace/core';
import {
  type CallStore,
  createCallStore,
  inProcessCalls,
  type Journal,
  journal,
} from '@millrace/core/journal';
import {
  checkOptions,
  having,
  isFlag,
  isFunction,
  isRecord,
  type Rule,
} from '@millrace/core/values';
import {
  asyncScheduler,
  BehaviorSubject,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  ignoreElements,
  isObservable,
  map,
  merge,
  mergeAll,
  mergeMap,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  startWith,
  Subject,
  Subscription,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { type Clock, createClock } from './clock.js';
import { holdable, refused } from './holds.js';
import { createHub, type Hub } from './hub.js';
import { type Inspected, inspecting } from './inspect.js';
import { forked$, type Source } from './source.js';

/** Options of `devtools`. */
export interface DevtoolsOptions {
  /** The port on 127.0.0.1. Default: 4983, or a free one if it is taken; 0 for a free one. */
  readonly port?: number;
  /** The secret in the address of the page. Default: a random one. Set it to keep the address over restarts. */
  readonly token?: string;
  /** Whether there are devtools at all. Default: unless `NODE_ENV` is `production` or `test`. */
  readonly enabled?: boolean;
  /**
   * Records every call, and keeps the process running, so you can inspect a short script. Default: false:
   * calls are recorded while a page is open, and the process may end.
   */
  readonly keepOpen?: boolean;
  /** The journal of the agent, if it has one: forks read and write its store. Default: calls are kept in this process. */
  readonly journal?: Journal<CallStore>;
  /** Called with a line that has the address. Default: `console.error`. */
  readonly print?: (line: string) => void;
}

/** The devtools of a process. */
export interface Devtools {
  /** Returns the agent, with calls that the page shows. Without devtools, it is the agent itself. */
  readonly inspect: <A extends Agent>(agent: A) => A;
  /** Emits the address of the page, once it listens. Without devtools, it completes empty. Errors with `config` if it cannot listen. */
  readonly address$: Observable<string>;
  /** Closes the page, and lets every held call go. */
  readonly close: () => void;
}

/** How long calls are still recorded and held after the last page has gone: it may only be reloaded. */
const graceMs = 5_000;

/** Ended calls beyond these are forgotten, oldest first. */
const mostCalls = 50;

/**
 * Returns an agent whose calls a local page shows while they run, as a marble diagram: steps back in time, forks,
 * breakpoints. Prints the address of the page, which only this machine can open. A call without an open page is a call
 * of the agent itself. In production and in tests, it returns the agent.
 *
 * @example
 * ```ts
 * const agent = devtools(createAgent({ model, tools }));
 * // Devtools: http://127.0.0.1:4983/#token=…
 * ```
 */
export const devtools = <A extends Agent>(agent: A, options: DevtoolsOptions = {}): A => {
  checkAgent('devtools()', agent);
  return createDevtools(options).inspect(agent);
};

/** Creates devtools for several agents, with one page. They start immediately. */
export const createDevtools = (options: DevtoolsOptions = {}): Devtools => {
  checkOptions('devtools()', options, rules);
  const { enabled = isDevelopment() } = options;
  if (!enabled) return { inspect: (agent) => agent, address$: EMPTY, close: () => undefined };
  const { keepOpen = false, print = console.error, port, token } = options;
  const running = new Subscription();
  const { source, inspect, watch$ } = createAgentSource(options);
  const address$ = new ReplaySubject<string>(1);
  running.add(watch$.subscribe());
  running.add(
    defer(() => import('./listen.js'))
      .pipe(
        mergeMap(({ listen$ }) =>
          listen$(source, {
            ...(port === undefined ? {} : { port }),
            ...(token === undefined ? {} : { token }),
            keepsRunning: keepOpen,
          }),
        ),
        tap((address) => print(`Devtools: ${address}`)),
      )
      .subscribe(address$),
  );
  // The caller may not listen for the error.
  running.add(
    address$.subscribe({ error: (error: unknown) => print(`Devtools: ${messageOf(error)}`) }),
  );
  return {
    inspect: (agent) => {
      checkAgent('inspect()', agent);
      return inspect(agent);
    },
    address$: address$.asObservable(),
    close: () => {
      running.unsubscribe();
      source.hub.holds.releaseAll();
    },
  };
};

/** Node sets the variable; without it, this is a browser or a worker. */
const isDevelopment = (): boolean =>
  typeof process !== 'undefined' && !['production', 'test'].includes(process.env['NODE_ENV'] ?? '');

/** The calls of agents of this process. */
export const createAgentSource = ({ keepOpen = false, journal: own }: DevtoolsOptions) => {
  const hub = createHub(asyncScheduler);
  const agents$ = new BehaviorSubject<readonly Agent[]>([]);
  const live = new Map<string, Inspected>();
  const kept = journal(createCallStore(inProcessCalls()));
  const recorder = own ?? kept;
  const forks$ = new Subject<Observable<never>>();
  const forks = new Set<string>();
  const clocks = new WeakMap<object, Clock>();
  let isWatched = keepOpen;
  const layers: readonly Layer[] = [
    ...inspecting({
      hub,
      clockOf: ({ scheduler }) => clocks.get(scheduler),
      begin: ({ call: { rootId } }, call) => {
        live.set(rootId, call);
        // A fork is recorded in the store of the original.
        const isForkable = own !== undefined || !call.hasJournal || forks.has(rootId);
        hub.log(rootId).set({ isInspected: true, ...(isForkable ? {} : { unforkable }) });
        return () => {
          live.delete(rootId);
          forget(hub, kept);
        };
      },
    }),
    ...(own === undefined ? [unlessRecorded(kept)] : []),
  ];
  const inspected = new WeakMap<object, object>();
  const choose = <Own>(
    agent: Agent<Own>,
    options: CallOptions,
  ): readonly [Agent<Own>, CallOptions] => {
    // Sub-agents inherit the layers and the clock.
    if (!isWatched || options.parent !== undefined) return [agent, options];
    const clock = createClock(options.scheduler ?? asyncScheduler);
    clocks.set(clock, clock);
    const seen = inspected.get(agent) ?? agent.with(...layers);
    inspected.set(agent, seen);
    // The layers do not change the output.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return [seen as Agent<Own>, { ...options, scheduler: clock }];
  };
  const watched$ = hub.pages$.pipe(
    switchMap((pages) => (pages > 0 ? of(true) : timer(graceMs).pipe(map(() => false)))),
    startWith(false),
    distinctUntilChanged(),
    tap((isOpen) => {
      isWatched = isOpen || keepOpen;
      if (!isOpen) hub.holds.releaseAll();
    }),
    map(() => isWatched),
    distinctUntilChanged(),
  );
  const seen$ = watched$.pipe(
    switchMap((isOn) =>
      isOn
        ? agents$.pipe(switchMap((agents) => merge(...agents.map(({ events$ }) => events$))))
        : NEVER,
    ),
    tap((event) => {
      hub.log(event.rootId).add(event);
      hub.changed();
    }),
    ignoreElements(),
  );
  const watch$ = merge(seen$, forks$.pipe(mergeAll()));
  const resumed$ = (id: string, newId: string, at: string): Observable<never> =>
    defer(() => {
      const { entry } = hub.log(id);
      const agent = agents$.value.find(({ name }) => name === entry.agent);
      if (agent === undefined) throw refused(404, `There is no agent '${entry.agent}' here.`);
      const { input, agent: name } = entry;
      forks.add(newId);
      const startedAt = asyncScheduler.now();
      hub.log(newId, { agent: name, input, startedAt, forkedFrom: { callId: id, at } });
      hub.changed();
      return recorder.resumeStream$(agent, newId).pipe(
        ignoreElements(),
        catchError((error: unknown) => {
          hub.log(newId).set({ status: 'failed' });
          hub.notice(`The fork ${newId} failed: ${messageOf(error)}`);
          return EMPTY;
        }),
      );
    });
  const source: Source = {
    hub,
    kind: 'agents',
    holdable,
    title: process.argv[1]?.split(/[\\/]/u).at(-1) ?? 'agents',
    open: () => undefined,
    search$: (text) =>
      defer(() => {
        const found = [...hub.logs.values()].filter((log) => log.contains(text.toLowerCase()));
        return of(found.map(({ id }) => id));
      }),
    fork$: (id, request) =>
      defer(() => {
        const log = hub.logs.get(id);
        if (log === undefined) throw refused(404, `There is no call '${id}'.`);
        const { unforkable: why } = log.entry;
        if (why !== undefined) throw refused(409, why);
        return forked$(recorder.store, id, request).pipe(
          tap((newId) => {
            forks$.next(resumed$(id, newId, request.at));
          }),
        );
      }),
    interrupt: (id, message) => {
      if (live.get(id)?.interrupt(message) !== true)
        throw refused(409, `The call '${id}' does not run, or cannot be interrupted.`);
    },
  };
  const inspect = <A extends Agent>(agent: A): A => {
    // The type of the agent stays what it is: calls only get layers.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    const wrapped = wrapAgent(agent, choose) as A;
    agents$.next([...agents$.value, wrapped]);
    return wrapped;
  };
  return { source, inspect, watch$ };
};

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

const unforkable =
  'The agent records its calls with a journal of its own. Pass it to fork them: devtools(agent, { journal }).';

/** The journal as a layer that gives way to one that the agent has. */
const unlessRecorded = ({ open, call, step, ...rest }: Journal): Layer => {
  const yields = ({ layers }: { readonly layers: readonly Layer[] }): boolean =>
    layers.some(({ name }) => name === 'journal');
  const { priority, inherit } = rest;
  return {
    name: 'devtools journal',
    ...(priority === undefined ? {} : { priority }),
    ...(inherit === undefined ? {} : { inherit }),
    open: (context) => (yields(context) ? (call$) => call$ : (open?.(context) ?? same)),
    call: (context) => (yields(context) ? same : (call?.(context) ?? same)),
    step: (context) => (yields(context) ? same : (step?.(context) ?? same)),
  };
};

const same = <T>(value: T): T => value;

/** Forgets the oldest ended calls, with their records. */
const forget = (hub: Hub, { store }: Pick<Journal<CallStore>, 'store'>): void => {
  const ended = [...hub.logs.values()].filter(({ isOver }) => isOver);
  const ids = ended.slice(0, Math.max(0, ended.length - mostCalls)).map(({ id }) => id);
  if (ids.length === 0) return;
  hub.remove(ids);
  ids.forEach((id) => store.driver.remove$(id).subscribe());
};

const checkAgent = (owner: string, agent: unknown): void => {
  if (isRecord(agent) && isObservable(agent['events$']) && having('with', '')[0](agent)) return;
  throw new MillraceError('config', `${owner} takes an agent, such as one from createAgent().`);
};

/** Options of a page of devtools. */
export const listenRules: Readonly<Record<'port' | 'token', Rule>> = {
  port: [
    (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
    'a port from 0 to 65535',
  ],
  token: [
    (value) => typeof value === 'string' && /^[\w-]{16,}$/u.test(value),
    'a secret of at least 16 letters and digits',
  ],
};

const rules: Readonly<Record<keyof DevtoolsOptions, Rule>> = {
  ...listenRules,
  enabled: isFlag,
  keepOpen: isFlag,
  journal: having('resume$', 'a journal, such as journal(store)'),
  print: isFunction,
};
