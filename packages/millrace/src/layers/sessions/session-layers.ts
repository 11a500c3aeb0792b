import {
  AsyncSubject,
  concat,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  reduce,
  share,
  take,
  takeWhile,
  tap,
} from 'rxjs';
import { continueWith } from '../../flow/eventual.js';
import { restoreAsyncContext } from '../../flow/async-context.js';
import { bindAsyncContext } from '../../flow/async-scope.js';
import type { OnSuspended } from '../../memories/cancel-suspended.js';
import {
  conversation,
  failures,
  type OnFailure,
  placed,
  suspended,
} from '../../memories/conversation.js';
import { type MemoryFactory, inProcessMemory } from '../../memories/in-process-memory.js';
import { windowMemory } from '../../memories/window-memory.js';
import type { Agent } from '../../agent.js';
import { type MillraceError, misuse } from '../../values/errors.js';
import { pendingApprovals } from '../approval.js';
import type { Interrupt } from '../../flow/interruption.js';
import { queueForm, type QueueRecord, queueStep } from '../../journal/call-record.js';
import type { Layer, Context } from '../../seams/layer.js';
import type { Memory } from '../../values/memory.js';
import type { Place } from '../../values/message-tree.js';
import { watchingSpending } from '../../seams/spending.js';
import { recorded } from '../../memories/recorded.js';
import { cell, waited$, offTheClock } from '../../step.js';
import type { ContextEntry } from '../../tools/context-key.js';
import { defined } from '../../values/json.js';
import { having } from '../../values/options.js';
import { createToolkit } from '../../tools/toolkit.js';
import {
  type Admission,
  createSessionQueues,
  type Occupant,
  type OnBusy,
  type SessionQueue,
} from './session-queue.js';
import { createSettlements, type Settlements, settlingOnce } from './settle-once.js';
import { createSessionRecords, type SessionRecord } from './session-state.js';
import { createSteering, steeringLayer, steerings } from './steering.js';
import { ensurePreCall$ } from '../../call/layers/pre-call.js';
import { scopeOf } from '../../seams/call-scope.js';
import { interruptLayer } from '../../seams/steps.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { callProgress } from '../../seams/progress.js';

export interface SessionParts {
  readonly id: string;
  readonly queue: SessionQueue;
  readonly memory: Memory;
  readonly record: SessionRecord;
  readonly settlements: Settlements;
}

export type PartsOf = (id: string) => SessionParts;

/**
 * Shared by agent and memory function: two handles of a conversation must know of each other. The key of the default
 * memory is the agent. Gone with either.
 */
const partsByAgent = new WeakMap<object, WeakMap<object, PartsOf>>();

export const partsFor = (agent: Agent, memory: MemoryFactory | undefined): PartsOf => {
  const ofAgent = partsByAgent.get(agent) ?? new WeakMap<object, PartsOf>();
  partsByAgent.set(agent, ofAgent);
  const key = memory ?? agent;
  const partsOf =
    ofAgent.get(key) ??
    createParts(agent, memory ?? windowMemory(inProcessMemory(), { turns: 40 }));
  ofAgent.set(key, partsOf);
  return partsOf;
};

const createParts = (agent: Agent, memoryOf: MemoryFactory): PartsOf => {
  const queueOf = createSessionQueues();
  const recordOf = createSessionRecords(createToolkit(agent.tools));
  const settlementsOf = createSettlements();
  return (id) => {
    const memory = memoryOf(id);
    if (!isMemory(memory)) throw invalidMemory();
    const queue = queueOf(id);
    const record = recordOf(id, (change) => {
      const hooks = queue.running?.hooks;
      hooks?.report(hooks.iteration(), change);
      return hooks !== undefined;
    });
    return { id, queue, memory, record, settlements: settlementsOf(id) };
  };
};

const isMemory = (made: unknown): boolean =>
  having('load$', '')[0](made) && having('append$', '')[0](made);

const invalidMemory = (): MillraceError =>
  misuse(
    "sessions(): 'memory' must return an object with load$() and append$(messages) for each session.",
  );

export interface OpenedSession extends SessionParts {
  readonly context: readonly ContextEntry[];
}

export interface CallEntry {
  readonly onBusy: OnBusy;
  readonly maxQueue: number;
  readonly onFailure: OnFailure;
  /** Default of the session. */
  readonly onSuspended: OnSuspended;
  /** Recorded, so that a call that is resumed before it was opened does the same. */
  readonly place: SessionPlace;
  /** The subscriptions to the same cold call. */
  readonly attempts: Attempts;
  readonly arrival?: Admission;
  readonly hasOwnTools: boolean;
  readonly layers: readonly Layer[];
}

export interface SessionPlace extends Place {
  /** Set if it differs from the default of the session. */
  readonly onSuspended?: OnSuspended;
  /** The call that asked with this input first. */
  readonly asks?: string;
}

export interface Attempts {
  /** The place of one more attempt. */
  place(): SessionPlace;
  opened(callId: string, after: string | null | undefined): void;
  replied(): void;
}

/** Until one has replied, each subscription to a cold call asks with the message of the first one, and at its place. */
export const createAttempts = (isNamed: boolean): Attempts => {
  let first: { readonly callId: string; readonly after?: string | null } | undefined;
  return {
    place: () =>
      first === undefined
        ? {}
        : {
            ...defined({ after: first.after }),
            replaces: `${first.callId}/input/0`,
            asks: first.callId,
          },
    opened: (callId, after) => {
      if (!isNamed) first ??= { callId, ...defined({ after }) };
    },
    replied: () => {
      first = undefined;
    },
  };
};

export const sessionLayers = (place: OpenedSession, entry: CallEntry): readonly Layer[] => [
  interruptLayer,
  usageLayer(place),
  queueLayer(place, entry),
  turnLayer(place, entry),
  supersededLayer,
  steeringLayer,
  conversation,
  settlingOnce(place),
];

const queueOfCall = cell(
  'call',
  (): { acquired$?: Observable<QueueOutcome>; turn?: QueueRecord } => ({}),
);

type QueueOutcome = QueueRecord['as'];

const queueLayer = (
  { id, queue, record, settlements, context: values }: OpenedSession,
  entry: CallEntry,
): Layer => ({
  name: 'session',
  // Outermost: work of layers after the reply still belongs to the call.
  priority: layerPlaces.session,
  labels: { sessionId: id },
  context: values,
  call: (context) => (next) => (call) =>
    defer(() => {
      const { info, interruption, local, whenOver } = context;
      const { waiters } = scopeOf(context);
      if (local(recorded).by?.hasEnded === true) return next(call);
      const queueState = local(queueOfCall);
      const own = createSteering(info);
      local(steerings).set(info.callId, own);
      const occupant: Occupant = {
        callId: info.callId,
        after: entry.place.after,
        input: call.input,
        waiters,
        interrupt: interrupting(interruption),
        running: { ...context, steering: own, layers: entry.layers },
      };
      const end = (): void => {
        own.close();
        settlements.leave(info.callId);
        queue.release(occupant);
      };
      whenOver(() => queue.startNext(occupant));
      const acquired$ = acquireTurn$(queue, occupant, interruption, entry);
      queueState.acquired$ = acquired$;
      return concat(
        entry.arrival?.previousQueued$ ?? EMPTY,
        merge(
          acquired$.pipe(ignoreElements()),
          defer(() => next(call)),
        ),
      ).pipe(
        take(1),
        tap((reply) => {
          entry.attempts.replied();
          if (queueState.turn)
            record.end(info.callId, reply, local(callProgress).isRemembered === true);
          end();
        }),
        finalize(end),
      );
    }),
});

/** Interrupts a call in the async context in which it was made, not in that of the one who interrupts. */
const interrupting = (interruption: Context['interruption']): Occupant['interrupt'] => {
  let isInterrupted = false;
  const enter = bindAsyncContext((interrupt: Interrupt) => {
    isInterrupted = interruption.trigger(interrupt);
  });
  return (interrupt) => {
    enter(interrupt);
    return isInterrupted;
  };
};

const acquireTurn$ = (
  queue: SessionQueue,
  occupant: Occupant,
  { signal$ }: Pick<Context['interruption'], 'signal$'>,
  { onBusy, maxQueue, arrival }: CallEntry,
): Observable<QueueOutcome> => {
  // An interrupted call leaves the queue immediately.
  const acquired$ = merge(
    queue.acquire$(occupant, onBusy, maxQueue),
    signal$.pipe(map(() => 'interrupted' as const)),
  ).pipe(
    takeWhile((now) => now === 'superseded', true),
    reduce((as: QueueOutcome, now) => (now === 'started' ? as : now), 'seated'),
  );
  // The next call may queue once this one is running or queued.
  return merge(
    acquired$,
    defer(() => {
      arrival?.queued();
      return EMPTY;
    }),
  ).pipe(
    share({ connector: () => new AsyncSubject(), resetOnComplete: false }),
    restoreAsyncContext(),
  );
};

const turnLayer = (
  { memory, record }: SessionParts,
  { arrival, attempts, hasOwnTools, onFailure, onSuspended, place }: CallEntry,
): Layer => ({
  name: 'sessionTurn',
  priority: layerPlaces.sessionTurn,
  call: (context) => (next) => (call) =>
    offTheClock(
      context,
      turn$(context, () => ({ ...place, ...attempts.place() })),
    ).pipe(
      continueWith((turn) => {
        const { info, hooks, interruption, local } = context;
        local(queueOfCall).turn = turn;
        local(failures).mode = onFailure;
        local(suspended).mode = turn.onSuspended ?? onSuspended;
        const { after, replaces, asks } = turn;
        const opened = (at: string | null | undefined): void => attempts.opened(info.callId, at);
        Object.assign(local(placed), defined({ after, replaces, asks, opened }));
        if (turn.as === 'interrupted') {
          interruption.trigger(messageOf(turn));
          return next(call);
        }
        record.begin(local(recorded).by && info.callId);
        return ensurePreCall$(context, () => {
          // A resumed call has reported the earlier changes already.
          if (arrival !== undefined)
            record.takePending().forEach((change) => hooks.report(0, change));
          return next({ ...call, memory, ...(!hasOwnTools && { toolkit: record.toolkit }) });
        });
      }),
    ),
});

const turn$ = (context: Context, placeNow: () => SessionPlace): Observable<QueueRecord> => {
  const { interruption, local, perform } = context;
  const { acquired$ = EMPTY } = local(queueOfCall);
  const { by: journal } = local(recorded);
  return merge(
    acquired$,
    // A layer that cuts the wait for another reason does not interrupt the call.
    waited$(context, 'queue', NEVER).pipe(filter(() => interruption.current !== undefined)),
  ).pipe(
    map((as) => (as === 'interrupted' ? undefined : as)),
    take(1),
    continueWith((as): Observable<QueueRecord> => {
      const place = placeNow();
      const now: QueueRecord =
        as === undefined
          ? { as: 'interrupted', ...messageOf(interruption.current ?? {}) }
          : { as, ...place };
      const mayBeWritten = journal?.mayBeWritten(queueStep) === true;
      if (as === 'superseded' && !mayBeWritten && journal?.isWritten('open') === true) {
        // It had its turn before it was resumed: superseding it now interrupts the resumed call.
        interruption.trigger({});
        return of({ as: 'seated' });
      }
      const isPlain = as === 'seated' && Object.keys(place).length === 0;
      if (isPlain && !mayBeWritten) return of(now);
      const step = { kind: 'seat', id: queueStep, input: undefined, form: queueForm };
      return perform<QueueRecord>({ ...step, run: () => of(now) }).pipe(
        // A call that left the queue has no turn, even if its record differs.
        map((then) => (as === undefined ? now : then)),
      );
    }),
  );
};

const messageOf = ({ message }: Interrupt): Interrupt => (message === undefined ? {} : { message });

const supersededLayer: Layer = {
  name: 'superseded',
  priority: layerPlaces.superseded,
  call:
    ({ interruption, local }) =>
    (next) =>
    (call) => {
      if (local(queueOfCall).turn?.as !== 'superseded') return next(call);
      interruption.trigger({});
      return next({ ...call, status: 'interrupted' });
    },
};

const usageLayer = ({ record }: SessionParts): Layer => ({
  name: 'sessionUsage',
  priority: layerPlaces.budget,
  inherit: true,
  step: ({ info: { callId }, hooks, local }) => {
    local(pendingApprovals).add = (toolCall, iteration) =>
      record.awaitApproval({ callId, toolCall }, (change) => hooks.report(iteration, change));
    return (next) =>
      watchingSpending(
        next,
        { local },
        {
          live: ({ usage }) => record.spend(usage),
          replayed: ({ usage }) => record.spend(usage),
        },
      );
  },
});
