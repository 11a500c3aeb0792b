import {
  type Agent,
  type AgentEvent,
  type Demand,
  inProcessMemory,
  type Message,
  type MillraceError,
} from 'millrace';
import { type CallStore, journal } from 'millrace/journal';
import { keepSessions, type KeptSessions, type SessionStore } from 'millrace/sessions';
import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  type Observable,
  retry,
  take,
  takeUntil,
  tap,
  throwIfEmpty,
} from 'rxjs';
import type { UserLimits } from '../limits/index.js';
import { aloneCall$, type AskedAlone } from './alone.js';
import { type BackgroundWork, createBackgroundWork } from './background-work.js';
import { type CallControls, createCallControls } from './call-controls.js';
import { type CallSlots, createCallSlots } from './call-slots.js';
import { type Collection, createCollection, type TitleOf } from './collection.js';
import { closing } from './guard.js';
import { createOpenSessions, type OpenSessions } from './open-sessions.js';
import { type PlacesOptions, tree$ } from './places.js';
import { createReading, type Reading } from './reading.js';
import { createPruning, madeRoom$, type Room } from './retention.js';
import { createRuns, type OnDisconnect, type OpenRun, type Runs } from './runs.js';
import { createSessionTurns } from './session-turns.js';
import {
  nothingShown,
  type ShownConversation,
  shownOf,
  withQuestion$,
} from './shown-conversation.js';
import { type Asked, createStarting } from './starting.js';

export interface ConversationsOptions extends PlacesOptions {
  readonly onSuspended?: 'cancel' | 'refuse' | undefined;
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly onDisconnect: OnDisconnect;
  readonly maxCalls: number;
  readonly limits?: UserLimits | undefined;
  /** Ended calls are removed from the store this long after their end, in milliseconds. */
  readonly keepCallsMs: number;
  /** Without a store: the conversations in memory, and their maximum size in bytes. */
  readonly room?: Room | undefined;
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly title?: TitleOf | undefined;
  /** Called with the error of a call, once, even if it has no reader, and with errors of the store. */
  readonly report: (error: MillraceError, callId?: string) => void;
}

export interface AloneCall {
  /** Runs the call. Cold. */
  readonly event$: (demand?: Demand) => Observable<AgentEvent>;
  /** Frees its slot. */
  readonly free: () => void;
}

/** The conversations of an agent. Their calls run on their own: readers come and go. */
export interface Conversations extends Reading, Collection, CallControls {
  /** Takes a slot for a call without a conversation. Throws `busy` above `maxCalls`. */
  alone(asked: AskedAlone): AloneCall;
  /** Starts a call, and emits its id once it runs or waits in the queue of its session. */
  start$(sessionId: string, asked: Asked): Observable<string>;
  /** The messages of the calls that have ended, on the branch that is continued by default. */
  messages$(sessionId: string): Observable<readonly Message[]>;
  /** Emits a conversation as a client shows it: the branch that is continued by default, or that of a message. */
  shown$(sessionId: string, at?: string): Observable<ShownConversation>;
  /** Refuses new calls, drains the running ones, and completes. They are resumed when the store is opened again. */
  close$(timeoutMs?: number): Observable<never>;
}

/** Reports errors, but for those of calls that the server cuts when it closes: the next one resumes them. */
const withoutCut =
  (
    report: ConversationsOptions['report'],
    isClosing: () => boolean,
  ): ConversationsOptions['report'] =>
  (error, callId) => {
    const isPlanned = callId !== undefined && error.code === 'aborted' && isClosing();
    if (!isPlanned) report(error, callId);
  };

export const createConversations = (agent: Agent, options: ConversationsOptions): Conversations => {
  const { store, room } = options;
  const { calls } = store;
  const report = withoutCut(options.report, () => slots.isClosing());
  const background = createBackgroundWork(report);
  const runs = createRuns(options.onDisconnect, ({ callId, over$ }) => {
    // Remove its record; otherwise the call would be resumed.
    background.run(over$.pipe(concatMap(() => calls.driver.remove$(callId))));
  });
  const slots = createCallSlots(runs, options);
  // Create a memory per server: with a shared one, two servers would share sessions.
  const memory = inProcessMemory();
  const kept = keepSessions(agent, store.sessions, { journal: journal(calls), memory });
  const sessions = createOpenSessions({
    ...{ agent, store, kept, runs, report },
    work: background.run,
    assertOpen: slots.assertOpen,
    ...(room && { used: room.kept.use }),
  });
  const { existing$, withCurrent$, forget } = sessions;
  const inTurn$ = createSessionTurns(background);
  const contents = createContents(existing$, runs, calls);
  const { shown$ } = contents;
  const { titles, ...collection } = createCollection({
    ...{ store, runs, existing$, withCurrent$, shown$, forget, inTurn$ },
    title: options.title,
  });
  const pruning$ = createPruning(calls, options.keepCallsMs);
  const started$ = createStarting({
    ...options,
    ...{ calls, runs, sessions, titles, background, inTurn$ },
  });
  background.run(written$(runs, calls));
  background.run(sessions.recovered$);
  if (room !== undefined) background.run(keptSmall$(room, runs, collection, background));
  return {
    ...createReading(calls, runs),
    ...collection,
    ...createCallControls({ calls, runs, existing$, withCurrent$, inTurn$ }),
    ...contents,
    start$: (sessionId, request) =>
      defer(() => {
        const free = slots.take(request.metadata);
        background.runOwn(pruning$);
        return started$(sessionId, request, free).pipe(
          takeUntil(background.closed$),
          throwIfEmpty(closing),
          finalize(free),
        );
      }),
    alone: (asked) => ({
      free: slots.take(asked.metadata),
      event$: (demand) =>
        aloneCall$(agent, newAloneId(), { ...asked, ...(demand && { demand }) }, report).pipe(
          takeUntil(background.closed$),
        ),
    }),
    close$: (timeoutMs = 30_000) => closed$(timeoutMs, { slots, kept, runs, calls, background }),
  };
};

/** Reads the messages of conversations. */
const createContents = (
  existing$: OpenSessions['existing$'],
  runs: Runs,
  calls: CallStore,
): Pick<Conversations, 'messages$' | 'shown$'> => ({
  messages$: (sessionId) =>
    existing$(sessionId).pipe(
      concatMap((session) => session.saveState$()),
      map(({ messages }) => messages),
      defaultIfEmpty([]),
    ),
  shown$: (sessionId, at) =>
    existing$(sessionId).pipe(
      concatMap((session) =>
        tree$(session).pipe(map((tree) => shownOf(tree, runs.ofSession(sessionId), at))),
      ),
      concatMap((shown) => withQuestion$(calls, shown)),
      defaultIfEmpty(nothingShown),
    ),
});

/** Passes on to running calls which of their events have become durable. Subscribed before calls are resumed: a synchronous store writes their events meanwhile. */
const written$ = (runs: Runs, calls: CallStore): Observable<unknown> =>
  (calls.written$ ?? EMPTY).pipe(
    tap(([callId, seq]) => {
      runs.get(callId)?.tail.written(seq);
    }),
  );

/** Frees memory after each call. */
const keptSmall$ = (
  room: Room,
  runs: Runs,
  collection: Pick<Collection, 'removeIdle$'>,
  { reported$ }: BackgroundWork,
): Observable<unknown> =>
  runs.changed$.pipe(
    concatMap(() =>
      madeRoom$(room, runs, (sessionId) => collection.removeIdle$(sessionId)).pipe(
        catchError((cause: unknown) => reported$(cause)),
      ),
    ),
  );

const newAloneId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** Lets the running calls finish their step, cuts what remains, and completes. */
const closed$ = (
  timeoutMs: number,
  {
    slots,
    kept,
    runs,
    calls,
    background,
  }: {
    readonly slots: CallSlots;
    readonly kept: KeptSessions;
    readonly runs: Runs;
    readonly calls: CallStore;
    readonly background: BackgroundWork;
  },
): Observable<never> =>
  defer(() =>
    concat(
      merge(kept.drain$({ timeoutMs }).pipe(ignoreElements()), slots.drained$(timeoutMs)),
      defer(() => {
        const cut = runs.all();
        slots.close();
        background.close();
        return merge(...cut.map((run) => released$(run, calls)));
      }),
    ),
  );

/**
 * Completes once the record of an aborted call has no writer, or after a second. Otherwise the next server would take the
 * call for a running one.
 */
const released$ = ({ callId }: OpenRun, { driver }: CallStore): Observable<never> =>
  driver.claim$(callId).pipe(
    take(1),
    retry({ count: 100, delay: 10 }),
    ignoreElements(),
    catchError(() => EMPTY),
  );
