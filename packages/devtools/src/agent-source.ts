import { type Agent, type CallOptions, type Layer, wrapAgent } from 'millrace';
import {
  type CallStore,
  createCallStore,
  inProcessCalls,
  type Journal,
  journal,
} from 'millrace/journal';
import {
  asyncScheduler,
  BehaviorSubject,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeAll,
  mergeMap,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  skipWhile,
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
import { forked$, noticed, type Source, userOf } from './source.js';

export interface AgentSourceOptions {
  /** The name above the calls. Default: the file of the program. */
  readonly title?: string | undefined;
  /** Also inspects calls while no page is open. */
  readonly keepOpen?: boolean | undefined;
  /** Records calls in this process, so they can be forked. */
  readonly forks?: boolean | undefined;
  /** The journal of the agents, if they have one. */
  readonly journal?: Journal<CallStore> | undefined;
}

export interface AgentSource {
  readonly source: Source;
  /** Returns an agent whose calls are inspected while a page is open. */
  readonly inspect: <A extends Agent>(agent: A) => A;
  /** Records the events of the agents, and runs forks. Emits nothing, and never completes. Ends inspection. */
  readonly running$: Observable<never>;
}

/** Collects the calls of agents of this process. */
export const createAgentSource = ({
  title = process.argv[1]?.split(/[\\/]/u).at(-1) ?? 'agents',
  keepOpen = false,
  forks: isRecording = false,
  journal: own,
}: AgentSourceOptions): AgentSource => {
  const hub = createHub(asyncScheduler);
  const isOn$ = new BehaviorSubject(keepOpen);
  const added$ = new ReplaySubject<Agent>(Infinity);
  const kept = isRecording && own === undefined ? inMemory() : undefined;
  const forks = createForks(hub, own, kept);
  const live = new Map<string, Inspected>();
  const inspect = createInspect({ hub, forks, kept, live, isOn$, added$ });
  return {
    source: {
      hub,
      kind: 'agents',
      holdable,
      title,
      open$: (id) =>
        defer(() => {
          if (!hub.logs.has(id)) throw notRecordedCall(id);
          hub.restart(id);
          return EMPTY;
        }),
      search$: (text) => defer(() => of({ ids: callsWith(hub, text.toLowerCase()) })),
      older$: of(false),
      fork$: forks.fork$,
      interrupt: (id, message) => {
        if (live.get(id)?.interrupt(message) !== true)
          throw refused(409, `The call '${id}' is not running, or cannot be interrupted.`);
        hub.holds.release(id);
      },
    },
    inspect,
    running$: merge(
      watched$(hub).pipe(
        tap((isOpen) => {
          isOn$.next(isOpen || keepOpen);
          if (!isOpen) hub.holds.releaseAll();
        }),
        switchMap((isOpen) =>
          isOpen || keepOpen ? recording$(hub, added$, () => forget(hub, forks)) : NEVER,
        ),
      ),
      forks.running$,
    ).pipe(
      finalize(() => {
        isOn$.next(false);
        hub.holds.releaseAll();
        hub.remove([...hub.logs.keys()]);
      }),
    ),
  };
};

const callsWith = ({ logs }: Hub, text: string): readonly string[] =>
  [...logs.values()].filter((log) => log.contains(text)).map(({ id }) => id);

interface Inspection {
  readonly hub: Hub;
  readonly forks: ReturnType<typeof createForks>;
  readonly kept: Journal<CallStore> | undefined;
  /** The root calls that run, by their ids. */
  readonly live: Map<string, Inspected>;
  readonly isOn$: BehaviorSubject<boolean>;
  readonly added$: Subject<Agent>;
}

const createInspect = ({ hub, forks, kept, live, isOn$, added$ }: Inspection) => {
  const inspect: AgentSource['inspect'] = (agent) => {
    const clocks = new WeakMap<object, Clock>();
    const layers = inspecting({
      hub,
      clockOf: ({ scheduler }) => clocks.get(scheduler),
      begin: ({ info: { rootId, metadata } }, call) => {
        live.set(rootId, call);
        const why = forks.begin(rootId, wrapped, call);
        hub.log(rootId).set({
          isInspected: true,
          ...(why === undefined ? {} : { unforkable: why }),
          ...userOf(metadata),
        });
        return () => {
          live.delete(rootId);
          hub.holds.release(rootId);
          // Its last event was not seen.
          if (!isOn$.value) hub.logs.get(rootId)?.end('stopped');
        };
      },
    });
    const all = kept === undefined ? layers : [...layers, unlessRecorded(kept)];
    const wrapped = inspection(agent, all, clocks, isOn$);
    added$.next(wrapped);
    return wrapped;
  };
  return inspect;
};

/** Ended calls beyond these are forgotten, oldest first. */
const mostCalls = 50;

const forget = (hub: Hub, forks: ReturnType<typeof createForks>): void => {
  const ended = [...hub.logs.values()].filter(({ isOver }) => isOver);
  const ids = ended.slice(0, Math.max(0, ended.length - mostCalls)).map(({ id }) => id);
  if (ids.length === 0) return;
  hub.remove(ids);
  forks.forget(ids);
};

const inMemory = (): Journal<CallStore> => journal(createCallStore(inProcessCalls()));

/** Inspects the calls that begin while it is on, each on a clock of its own, which breakpoints stop. */
const inspection = <A extends Agent>(
  agent: A,
  layers: readonly Layer[],
  clocks: WeakMap<object, Clock>,
  isOn$: BehaviorSubject<boolean>,
): A => {
  const inspected = new WeakMap<object, object>();
  const choose = <Output>(
    plain: Agent<Output>,
    options: CallOptions,
  ): readonly [Agent<Output>, CallOptions] => {
    // Sub-agents inherit the layers and the clock.
    if (!isOn$.value || options.parent !== undefined) return [plain, options];
    const clock = createClock(options.scheduler ?? asyncScheduler);
    clocks.set(clock, clock);
    const seen = inspected.get(plain) ?? plain.with(...layers);
    inspected.set(plain, seen);
    // The layers do not change the output.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return [seen as Agent<Output>, { ...options, scheduler: clock }];
  };
  // The layers do not change the type of the agent.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return wrapAgent(agent, choose) as A;
};

/** How long calls are still recorded and held after the last page was closed: it may only be reloaded. */
const graceMs = 5_000;

const watched$ = (hub: Hub): Observable<boolean> =>
  hub.pages$.pipe(
    skipWhile((pages) => pages === 0),
    switchMap((pages) => (pages > 0 ? of(true) : timer(graceMs).pipe(map(() => false)))),
    startWith(false),
    distinctUntilChanged(),
  );

const recording$ = (hub: Hub, agents$: Observable<Agent>, onEnd: () => void): Observable<never> =>
  agents$.pipe(
    mergeMap(({ events$ }) => events$),
    mergeMap((event) =>
      // An event that cannot be shown must not end the others.
      defer(() => {
        const log = hub.log(event.rootId);
        log.add(event);
        if (log.isOver) onEnd();
        hub.changed();
        return EMPTY;
      }).pipe(catchError(noticed(hub, `An event '${event.type}' cannot be shown`))),
    ),
  );

const notRecordedCall = (id: string) =>
  refused(
    404,
    `There is no record of the call '${id}'. Without keepOpen: true, calls are recorded only while a page is open. The last ${mostCalls} of this process are kept.`,
  );

/** Forks calls, and runs them with the agents that made the originals. */
const createForks = (
  hub: Hub,
  given: Journal<CallStore> | undefined,
  kept: Journal<CallStore> | undefined,
) => {
  const recorder = given ?? kept;
  const work$ = new Subject<Observable<never>>();
  const agents = new Map<string, Agent>();
  const own = new Set<string>();
  const run$ = (agent: Agent, by: Journal, newId: string): Observable<never> =>
    by.resumeStream$(agent, newId).pipe(
      ignoreElements(),
      catchError((error: unknown) => {
        hub.log(newId).end('failed');
        return noticed(hub, `The fork ${newId} failed`)(error);
      }),
    );
  const start = (id: string, at: string, newId: string, by: Journal): void => {
    const { agent: name, input } = hub.log(id).entry;
    const agent = agents.get(id);
    if (agent === undefined) throw refused(409, `The agent of the call '${id}' is not known.`);
    own.add(newId);
    agents.set(newId, agent);
    const startedAt = asyncScheduler.now();
    hub.log(newId, { agent: name, input, startedAt, forkedFrom: { callId: id, at } });
    hub.changed();
    work$.next(run$(agent, by, newId));
  };
  return {
    running$: work$.pipe(mergeAll()),
    /** Returns why a call cannot be forked; `undefined` if it can. */
    begin: (id: string, agent: Agent, { hasJournal }: Inspected): string | undefined => {
      agents.set(id, agent);
      // A fork is recorded in the store of the original.
      if (given !== undefined || own.has(id)) return undefined;
      if (hasJournal) return ofOtherJournal;
      return kept === undefined ? notRecorded : undefined;
    },
    forget: (ids: readonly string[]): void => {
      for (const id of ids) {
        agents.delete(id);
        own.delete(id);
        work$.next(removed$(kept, id));
      }
    },
    fork$: (id: string, request: ForkRequest): Observable<string> =>
      defer(() => {
        const log = hub.logs.get(id);
        if (log === undefined) throw notRecordedCall(id);
        const { unforkable: why } = log.entry;
        if (recorder === undefined || why !== undefined) throw refused(409, why ?? notRecorded);
        return forked$(recorder.store, id, request).pipe(
          tap((newId) => {
            start(id, request.at, newId, recorder);
          }),
        );
      }),
  };
};

const removed$ = (kept: Journal<CallStore> | undefined, id: string): Observable<never> =>
  (kept?.store.driver.remove$(id) ?? EMPTY).pipe(
    ignoreElements(),
    catchError(() => EMPTY),
  );

const notRecorded =
  "This call is not recorded. To fork calls, set 'forks': devtools(agent, { forks: true }).";

const ofOtherJournal =
  'The agent records its calls with a journal of its own. Pass it to fork them: devtools(agent, { journal }).';

/** The journal as a layer that gives way to one of the agent. */
const unlessRecorded = ({ priority = 30, record, call, step }: Journal): Layer => {
  const yields = ({ layers }: { readonly layers: readonly Layer[] }): boolean =>
    layers.some(({ name }) => name === 'journal');
  return {
    name: 'devtools journal',
    priority,
    inherit: true,
    record: (context) => (yields(context) ? same : (record?.(context) ?? same)),
    call: (context) => (yields(context) ? same : (call?.(context) ?? same)),
    step: (context) => (yields(context) ? same : (step?.(context) ?? same)),
  };
};

const same = <T>(value: T): T => value;
