import { type Agent, type CallOptions, type Layer, wrapAgent } from '@millrace/core';
import {
  type CallStore,
  createCallStore,
  inProcessCalls,
  type Journal,
  journal,
} from '@millrace/core/journal';
import {
  asyncScheduler,
  BehaviorSubject,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  ignoreElements,
  map,
  merge,
  mergeAll,
  NEVER,
  type Observable,
  of,
  startWith,
  Subject,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { type Clock, createClock } from './clock.js';
import { holdable, refused } from './holds.js';
import { createHub, type Hub } from './hub.js';
import { type Inspected, inspecting } from './inspect.js';
import type { ForkRequest } from './page/protocol.js';
import { forked$, type Source } from './source.js';

export interface AgentSourceOptions {
  /** Also inspects calls while no page is open. */
  readonly keepOpen?: boolean;
  /** The journal of the agents, if they have one. */
  readonly journal?: Journal<CallStore>;
}

export interface AgentSource {
  readonly source: Source;
  /** Returns an agent whose calls are inspected while a page is open. */
  readonly inspect: <A extends Agent>(agent: A) => A;
  /** Records the events of the agents, and runs forks. Emits nothing, and never completes. */
  readonly running$: Observable<never>;
}

/** Collects the calls of agents of this process. */
export const createAgentSource = ({
  keepOpen = false,
  journal: own,
}: AgentSourceOptions): AgentSource => {
  const hub = createHub(asyncScheduler);
  const agents$ = new BehaviorSubject<readonly Agent[]>([]);
  const kept = journal(createCallStore(inProcessCalls()));
  const forks = createForks(hub, own ?? kept, agents$);
  const live = new Map<string, Inspected>();
  const clocks = new WeakMap<object, Clock>();
  const layers: readonly Layer[] = [
    ...inspecting({
      hub,
      clockOf: ({ scheduler }) => clocks.get(scheduler),
      begin: ({ call: { rootId } }, call) => {
        live.set(rootId, call);
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
  const isOn = { value: keepOpen };
  const wrap = inspection(layers, clocks, () => isOn.value);
  return {
    source: {
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
      fork$: forks.fork$,
      interrupt: (id, message) => {
        if (live.get(id)?.interrupt(message) !== true)
          throw refused(409, `The call '${id}' does not run, or cannot be interrupted.`);
      },
    },
    inspect: (agent) => {
      const wrapped = wrap(agent);
      agents$.next([...agents$.value, wrapped]);
      return wrapped;
    },
    running$: merge(
      watched$(hub).pipe(
        tap((isOpen) => {
          isOn.value = isOpen || keepOpen;
          if (!isOpen) hub.holds.releaseAll();
        }),
        switchMap((isOpen) => (isOpen || keepOpen ? recording$(hub, agents$) : NEVER)),
      ),
      forks.running$,
    ),
  };
};

/** Inspects the calls that begin while it is on, each on a clock of its own, which breakpoints stop. */
const inspection = (
  layers: readonly Layer[],
  clocks: WeakMap<object, Clock>,
  isOn: () => boolean,
): AgentSource['inspect'] => {
  const inspected = new WeakMap<object, object>();
  const choose = <Output>(
    agent: Agent<Output>,
    options: CallOptions,
  ): readonly [Agent<Output>, CallOptions] => {
    // Sub-agents inherit the layers and the clock.
    if (!isOn() || options.parent !== undefined) return [agent, options];
    const clock = createClock(options.scheduler ?? asyncScheduler);
    clocks.set(clock, clock);
    const seen = inspected.get(agent) ?? agent.with(...layers);
    inspected.set(agent, seen);
    // The layers do not change the output.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return [seen as Agent<Output>, { ...options, scheduler: clock }];
  };
  // The layers do not change the type of the agent.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return <A extends Agent>(agent: A) => wrapAgent(agent, choose) as A;
};

/** How long calls are still recorded and held after the last page was closed: it may only be reloaded. */
const graceMs = 5_000;

const watched$ = (hub: Hub): Observable<boolean> =>
  hub.pages$.pipe(
    switchMap((pages) => (pages > 0 ? of(true) : timer(graceMs).pipe(map(() => false)))),
    startWith(false),
    distinctUntilChanged(),
  );

const recording$ = (hub: Hub, agents$: Observable<readonly Agent[]>): Observable<never> =>
  agents$.pipe(
    switchMap((agents) => merge(...agents.map(({ events$ }) => events$))),
    tap((event) => {
      hub.log(event.rootId).add(event);
      hub.changed();
    }),
    ignoreElements(),
  );

/** Forks calls, and runs them with the agent that made the original. */
const createForks = (
  hub: Hub,
  recorder: Journal<CallStore>,
  agents$: BehaviorSubject<readonly Agent[]>,
) => {
  const started$ = new Subject<Observable<never>>();
  const ids = new Set<string>();
  const run$ = (id: string, at: string, newId: string): Observable<never> =>
    defer(() => {
      const { agent: name, input } = hub.log(id).entry;
      const agent = agents$.value.find((each) => each.name === name);
      if (agent === undefined) throw refused(404, `There is no agent '${name}' here.`);
      ids.add(newId);
      const startedAt = asyncScheduler.now();
      hub.log(newId, { agent: name, input, startedAt, forkedFrom: { callId: id, at } });
      hub.changed();
      return recorder.resumeStream$(agent, newId).pipe(ignoreElements());
    }).pipe(
      catchError((error: unknown) => {
        hub.log(newId).set({ status: 'failed' });
        hub.notice(`The fork ${newId} failed: ${messageOf(error)}`);
        return EMPTY;
      }),
    );
  return {
    running$: started$.pipe(mergeAll()),
    has: (id: string) => ids.has(id),
    fork$: (id: string, request: ForkRequest): Observable<string> =>
      defer(() => {
        const log = hub.logs.get(id);
        if (log === undefined) throw refused(404, `There is no call '${id}'.`);
        const { unforkable: why } = log.entry;
        if (why !== undefined) throw refused(409, why);
        return forked$(recorder.store, id, request).pipe(
          tap((newId) => {
            started$.next(run$(id, request.at, newId));
          }),
        );
      }),
  };
};

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

const unforkable =
  'The agent records its calls with a journal of its own. Pass it to fork them: devtools(agent, { journal }).';

/** The journal as a layer that gives way to one of the agent. */
const unlessRecorded = ({ priority = 30, open, call, step }: Journal): Layer => {
  const yields = ({ layers }: { readonly layers: readonly Layer[] }): boolean =>
    layers.some(({ name }) => name === 'journal');
  return {
    name: 'devtools journal',
    priority,
    inherit: true,
    open: (context) => (yields(context) ? same : (open?.(context) ?? same)),
    call: (context) => (yields(context) ? same : (call?.(context) ?? same)),
    step: (context) => (yields(context) ? same : (step?.(context) ?? same)),
  };
};

const same = <T>(value: T): T => value;

/** Ended calls beyond these are forgotten, oldest first. */
const mostCalls = 50;

const forget = (hub: Hub, { store }: Pick<Journal<CallStore>, 'store'>): void => {
  const ended = [...hub.logs.values()].filter(({ isOver }) => isOver);
  const ids = ended.slice(0, Math.max(0, ended.length - mostCalls)).map(({ id }) => id);
  if (ids.length === 0) return;
  hub.remove(ids);
  // Calls are kept in this process, so this is immediate.
  ids.forEach((id) => store.driver.remove$(id).subscribe());
};
