import { type Agent, type AgentEvent, MillraceError } from 'millrace';
import {
  attach$,
  type CallStore,
  calls$,
  type CallSummary,
  journal,
  replay$,
  steps$,
} from 'millrace/journal';
import { checkOptions, having, isRecord, isText, type Rule } from 'millrace/values';
import {
  asyncScheduler,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  repeat,
  Subject,
  switchMap,
  take,
  takeWhile,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { textOfJson } from './call-log.js';
import { refused } from './holds.js';
import { createHub, type Hub } from './hub.js';
import type { CallEntry, Found } from './page/protocol.js';
import { checkToken, pageRules, served$ } from './served.js';
import { forked$, noticed, type Source, userOf } from './source.js';

/** Options of `storeDevtools`. */
export interface StoreDevtoolsOptions {
  /** The port on 127.0.0.1. Default: 4983, or a free one if it is taken; 0 for a free one. */
  readonly port?: number | undefined;
  /** The secret in the address of the page. Default: a random one. */
  readonly token?: string | undefined;
  /** The name of the store, above the calls. Default: `store`. */
  readonly title?: string | undefined;
  /** The agents that can run forks of their calls. Default: none, so the page offers no forks. */
  readonly agents?: readonly Agent[] | undefined;
}

/** How often the list is read again while a page is open, in milliseconds. */
const readMs = 1_000;

/** Of so many reads, one reads the whole first page again: the others only what has changed. */
const wholeReads = 30;

/** The calls that the list has at first, and that each request for older ones adds. */
const pageSize = 200;

/** The calls whose logs one search reads. */
const searchSize = 500;

/**
 * Serves a page with the calls of a store, those of other processes included, also while they run. Emits its address.
 * Unsubscribing closes it. Errors with `config` if it cannot listen. Cold.
 */
export const storeDevtools = (
  store: CallStore,
  options: StoreDevtoolsOptions = {},
): Observable<string> => {
  checkOptions('storeDevtools()', { store, ...options }, rules, ['store']);
  checkToken('storeDevtools()', options);
  return defer(() => {
    const { source, reading$ } = createStoreSource(store, options);
    return merge(served$(source, options, true), reading$);
  });
};

const createStoreSource = (
  store: CallStore,
  { title = 'store', agents = [] }: StoreDevtoolsOptions,
): { readonly source: Source; readonly reading$: Observable<never> } => {
  const hub = createHub(asyncScheduler);
  const recorder = journal(store);
  const wanted$ = new Subject<string>();
  const forks$ = new Subject<Observable<unknown>>();
  const opened = new Set<string>();
  // The store is only read while a page is open.
  const isWatched$ = hub.pages$.pipe(
    map((pages) => pages > 0),
    distinctUntilChanged(),
  );
  const reading: Reading = { store, hub, agents, opened };
  const list = createList(reading);
  const reads$ = watching$(reading, list, wanted$);
  const source: Source = {
    hub,
    kind: 'store',
    title,
    holdable: [],
    pageSize,
    open$: (id) => opening$(reading, id, wanted$),
    search$: (text, until) => search$(reading, text.toLowerCase(), until),
    older$: list.older$,
    fork$: (id, request) =>
      defer(() => {
        const { agent: name } = hub.log(id).entry;
        const agent = agents.find((each) => each.name === name);
        if (agent === undefined) throw refused(409, unforkable(name));
        return forked$(store, id, request).pipe(
          tap((newId) => {
            forks$.next(recorder.resume$(agent, newId));
          }),
        );
      }),
    interrupt: () => {
      throw refused(409, 'Only the process that runs a call can interrupt it.');
    },
  };
  const running$ = forks$.pipe(
    mergeMap((fork$) => fork$.pipe(catchError(noticed(hub, 'The fork failed')))),
    ignoreElements(),
  );
  const reading$ = merge(
    isWatched$.pipe(switchMap((isWatched) => (isWatched ? reads$ : NEVER))),
    running$,
  );
  return { source, reading$ };
};

interface Reading {
  readonly store: CallStore;
  readonly hub: Hub;
  readonly agents: readonly Agent[];
  /** The calls whose logs are read. */
  readonly opened: Set<string>;
}

/** Asks for the log of a call, also of one that is not in the list: a link may name it. Errors if there is no such call. */
const opening$ = (
  { store, hub, opened }: Reading,
  id: string,
  wanted$: Subject<string>,
): Observable<never> => {
  const known$ = hub.logs.has(id) ? EMPTY : steps$(store, id).pipe(take(1), ignoreElements());
  return known$.pipe(
    tap({
      complete: () => {
        if (opened.has(id)) {
          hub.restart(id);
          return;
        }
        opened.add(id);
        hub.log(id).set({ isOpen: true });
        wanted$.next(id);
      },
    }),
  );
};

/** The list of calls, by page: the last written ones again and again, older ones once. */
const createList = (reading: Reading) => {
  const { store, hub } = reading;
  /** The time until which calls were read, the last time at which one was written, and the calls that run. */
  let oldest: number | undefined;
  let newest = -1;
  let running: ReadonlySet<string> = new Set();
  let reads = 0;
  const shown = (calls: readonly CallSummary[]): void => {
    // Oldest first, as calls of agents come.
    for (const call of calls.toReversed()) show(reading, call);
    hub.changed();
  };
  /** Those that were written since the last read. A call that runs may also have lost its process. */
  const newest$: Observable<never> = defer(() => {
    const unseen = new Set(running);
    // Clocks of other processes may differ.
    const since = reads++ % wholeReads === 0 ? -1 : newest;
    return calls$(store).pipe(
      take(pageSize),
      takeWhile(({ callId, updatedAt }) => {
        unseen.delete(callId);
        return updatedAt >= since || unseen.size > 0;
      }, true),
    );
  }).pipe(
    toArray(),
    tap((calls) => {
      oldest ??= calls.at(-1)?.updatedAt;
      newest = Math.max(newest, ...calls.map(({ updatedAt }) => updatedAt));
      running = new Set(calls.filter((it) => it.status === 'running').map((it) => it.callId));
      shown(calls);
    }),
    catchError(noticed(hub, 'The store cannot be read')),
    ignoreElements(),
  );
  const older$: Observable<boolean> = defer(() =>
    calls$(store, oldest === undefined ? {} : { writtenUntil: oldest }),
  ).pipe(
    filter(({ callId }) => !hub.logs.has(callId)),
    take(pageSize),
    toArray(),
    map((calls) => {
      oldest = calls.at(-1)?.updatedAt ?? oldest;
      shown(calls);
      return calls.length === pageSize;
    }),
  );
  return {
    newest$,
    older$,
    forget: (): void => {
      oldest = undefined;
      newest = -1;
      reads = 0;
    },
  };
};

/** Reads the list of calls again and again, and the logs that are wanted. Afterwards, the pages have none of them. */
const watching$ = (
  { store, hub, opened }: Reading,
  list: ReturnType<typeof createList>,
  wanted$: Observable<string>,
): Observable<never> => {
  const follow$ = (id: string): Observable<never> =>
    attach$(store, id).pipe(
      map(withoutStack),
      tap((event) => {
        hub.log(id).add(event);
        hub.changed();
      }),
      catchError(noticed(hub, `The call ${id} cannot be read`)),
      ignoreElements(),
    );
  return merge(
    list.newest$.pipe(repeat({ delay: () => timer(readMs) })),
    wanted$.pipe(mergeMap(follow$)),
  ).pipe(
    finalize(() => {
      hub.remove([...hub.logs.keys()]);
      opened.clear();
      list.forget();
    }),
  );
};

/** An event without a stack: that of its error is of this process, as a store keeps none. */
const withoutStack = (event: AgentEvent): AgentEvent => {
  if (!('error' in event) || !(event.error instanceof MillraceError)) return event;
  const { error } = event;
  const bare = new MillraceError(error.code, error.message, error);
  return { ...event, error: Object.defineProperty(bare, 'stack', { value: undefined }) };
};

/** Shows a call in the list. Of one whose log is read, the events say more. */
const show = ({ hub, agents, opened }: Reading, call: CallSummary): void => {
  const { callId } = call;
  const log = hub.logs.get(callId);
  const change: Partial<CallEntry> = {
    ...entryOf(call),
    ...(canFork(call, agents) ? {} : { unforkable: unforkable('agent' in call ? call.agent : '') }),
  };
  if (log === undefined) hub.log(callId, { isOpen: false, ...change });
  else if (!opened.has(callId) && differs(log.entry, change)) log.set(change);
};

const statuses = {
  running: 'running',
  ended: 'done',
  suspended: 'suspended',
  failed: 'failed',
  unfinished: 'stopped',
} as const;

const entryOf = (call: CallSummary): Partial<CallEntry> => {
  const { createdAt: startedAt, updatedAt } = call;
  if (call.status === 'unreadable')
    return { status: 'failed', reason: 'unreadable', answer: call.why, startedAt };
  const { agent, question: input, status, reason, sessionId, metadata = {}, forkedFrom } = call;
  return {
    ...{ agent, input, startedAt, status: statuses[status] },
    ...(status === 'running' ? {} : { endedAt: updatedAt }),
    ...(reason === undefined ? {} : { reason }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...userOf(metadata),
    ...(forkedFrom === undefined
      ? {}
      : { forkedFrom: { ...forkedFrom, at: stepOf(forkedFrom.at) } }),
  };
};

const stepOf = (at: string | { readonly iteration: number }): string =>
  typeof at === 'string' ? at : String(at.iteration);

const differs = (entry: CallEntry, change: Partial<CallEntry>): boolean =>
  textOfJson(entry) !== textOfJson({ ...entry, ...change });

/** Searches the calls that were last written until a time, in parts, and lists those that it finds. */
const search$ = (reading: Reading, text: string, from: number | undefined): Observable<Found> =>
  defer(() => {
    const { store, hub } = reading;
    let count = 0;
    let last = Infinity;
    let until: number | undefined;
    return calls$(store, from === undefined ? {} : { writtenUntil: from }).pipe(
      takeWhile(({ updatedAt }) => {
        // Calls of the same time are searched together, so the next search begins before them.
        const isPart = count < searchSize || updatedAt === last;
        if (!isPart) until = updatedAt;
        count += 1;
        last = updatedAt;
        return isPart;
      }),
      mergeMap((call) => has$(store, call, text).pipe(map(() => call)), 4),
      toArray(),
      map((calls) => {
        for (const call of calls) show(reading, call);
        hub.changed();
        const ids = calls.map(({ callId }) => callId);
        return { ids, ...(until !== undefined && { until }) };
      }),
    );
  });

/** Emits once if a call has a string in its summary or its log. */
const has$ = (store: CallStore, call: CallSummary, text: string): Observable<unknown> => {
  const isIn = (value: unknown): boolean => textOfJson(value).toLowerCase().includes(text);
  if (isIn(Object.values(call))) return of(call);
  return replay$(store, call.callId, { speed: Infinity }).pipe(
    map(withoutStack),
    filter(isIn),
    take(1),
    catchError(() => EMPTY),
  );
};

const canFork = (call: CallSummary, agents: readonly Agent[]): boolean =>
  'agent' in call && agents.some(({ name }) => name === call.agent);

const unforkable = (agent: string): string =>
  `These devtools do not have the agent '${agent}'. Pass it to fork its calls: storeDevtools(store, { agents }).`;

const rules: Readonly<Record<keyof StoreDevtoolsOptions | 'store', Rule>> = {
  ...pageRules,
  store: [
    (value) => isRecord(value) && isRecord(value['driver']),
    'a store of calls, such as openFiles(directory).calls',
  ],
  title: isText,
  agents: [
    (value) => Array.isArray(value) && value.every(having('call$', '')[0]),
    'a list of agents',
  ],
};
