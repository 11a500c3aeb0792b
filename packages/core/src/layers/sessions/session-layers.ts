import {
  AsyncSubject,
  concat,
  concatMap,
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
import { conversation, failures, type OnFailure } from '../../memories/conversation.js';
import { pendingApprovals } from '../approval.js';
import type { Interrupt } from '../../flow/interruption.js';
import { queueForm, type QueueRecord, queueStep } from '../../journal/call-record.js';
import type { Layer, LayerContext } from '../../seams/layer.js';
import type { Memory } from '../../values/memory.js';
import { checkInterrupt } from '../../phases/limit.js';
import { watchingSpending } from '../../seams/spending.js';
import { cell, recorded, replayedSteps, waited$, offTheClock } from '../../step.js';
import type { ContextEntry } from '../../tools/context-key.js';
import type { Arrival, Occupant, OnBusy, SessionQueue } from './session-queue.js';
import type { SessionRecord } from './session-state.js';
import { createSteering, steering, steeringOfCall } from './steering.js';
import { outcome, reportBeginning } from '../../run.js';

export interface SessionPlace {
  readonly id: string;
  readonly queue: SessionQueue;
  readonly memory: Memory;
  readonly record: SessionRecord;
}

export interface Opened extends SessionPlace {
  readonly context: readonly ContextEntry[];
}

export interface Entry {
  readonly onBusy: OnBusy;
  readonly maxQueue: number;
  readonly onFailure: OnFailure;
  readonly arrival?: Arrival;
  readonly hasOwnTools: boolean;
  /** Those of the handle that made the call. */
  readonly layers: readonly Layer[];
}

export const sessionLayers = (place: Opened, entry: Entry): readonly Layer[] => [
  counting(place),
  placing(place, entry),
  waiting(place, entry),
  superseding,
  conversation,
];

const placeOfCall = cell(
  'call',
  (): { acquired$?: Observable<Waited>; turn?: QueueRecord } => ({}),
);

type Waited = QueueRecord['as'];

const placing = ({ id, queue, record, context: values }: Opened, entry: Entry): Layer => ({
  name: 'session',
  // Outermost: what a layer does after the reply still belongs to the call.
  priority: Number.MIN_SAFE_INTEGER,
  info: { labels: { sessionId: id }, context: values },
  turn: (phases) => phases.toSpliced(phases.indexOf(checkInterrupt) + 1, 0, steering),
  call: (context) => (next) => (call) =>
    defer(() => {
      const { call: info, interruption, lineage, local, whenOver } = context;
      // Nothing is left to run.
      if (local(recorded).by?.hasEnded === true) return next(call);
      const place = local(placeOfCall);
      const own = createSteering(info);
      local(steeringOfCall).current = own;
      const occupant: Occupant = {
        callId: info.callId,
        input: call.input,
        lineage,
        interrupt: (interrupt) => interruption.trigger(interrupt),
        running: { ...context, steering: own, layers: entry.layers },
      };
      const end = (): void => {
        own.close();
        queue.release(occupant);
      };
      whenOver(() => queue.startNext(occupant));
      const acquired$ = acquiredBy$(queue, occupant, interruption, entry);
      place.acquired$ = acquired$;
      return concat(
        entry.arrival?.inTurn$ ?? EMPTY,
        merge(
          acquired$.pipe(ignoreElements()),
          defer(() => next(call)),
        ),
      ).pipe(
        take(1),
        tap((reply) => {
          if (place.turn) record.end(info.callId, reply, local(outcome).isRemembered === true);
          end();
        }),
        finalize(end),
      );
    }),
});

const acquiredBy$ = (
  queue: SessionQueue,
  occupant: Occupant,
  { signal$ }: Pick<LayerContext['interruption'], 'signal$'>,
  { onBusy, maxQueue, arrival }: Entry,
): Observable<Waited> => {
  // Who is interrupted leaves the queue at once.
  const acquired$ = merge(
    queue.acquire$(occupant, onBusy, maxQueue),
    signal$.pipe(map(() => 'interrupted' as const)),
  ).pipe(
    takeWhile((now) => now === 'superseded', true),
    reduce((as: Waited, now) => (now === 'started' ? as : now), 'seated'),
  );
  // The next call may ask for the place once this one has it, or waits for it.
  return merge(
    acquired$,
    defer(() => {
      arrival?.begun();
      return EMPTY;
    }),
  ).pipe(share({ connector: () => new AsyncSubject(), resetOnComplete: false }));
};

const waiting = (
  { memory, record }: SessionPlace,
  { arrival, hasOwnTools, onFailure }: Entry,
): Layer => ({
  name: 'sessionTurn',
  priority: 50,
  call: (context) => (next) => (call) =>
    offTheClock(context, turn$(context)).pipe(
      concatMap((turn) => {
        const { call: info, hooks, interruption, local } = context;
        local(placeOfCall).turn = turn;
        local(failures).mode = onFailure;
        if (turn.as === 'interrupted') {
          interruption.trigger(messageOf(turn));
          return next(call);
        }
        record.begin(local(recorded).by && info.callId);
        reportBeginning(context);
        // A resumed call has reported before what had changed.
        if (arrival !== undefined) record.takeUntold().forEach((change) => hooks.report(0, change));
        return next({ ...call, memory, ...(!hasOwnTools && { toolkit: record.toolkit }) });
      }),
    ),
});

const turn$ = (context: LayerContext): Observable<QueueRecord> => {
  const { interruption, local, perform } = context;
  const { acquired$ = EMPTY } = local(placeOfCall);
  const { by: journal } = local(recorded);
  return merge(
    acquired$,
    // A layer that cuts the wait for another reason does not interrupt the call.
    waited$(context, 'queue', NEVER).pipe(filter(() => interruption.current !== undefined)),
  ).pipe(
    map((as) => (as === 'interrupted' ? undefined : as)),
    take(1),
    concatMap((as): Observable<QueueRecord> => {
      const now: QueueRecord =
        as === undefined ? { as: 'interrupted', ...messageOf(interruption.current ?? {}) } : { as };
      const mayBeWritten = journal?.mayBeWritten(queueStep) === true;
      if (as === 'superseded' && !mayBeWritten && journal?.isWritten('open') === true) {
        // It had its turn before it was resumed: what makes it void now interrupts it where it goes on.
        interruption.trigger({});
        return of({ as: 'seated' });
      }
      if (as === 'seated' && !mayBeWritten) return of(now);
      const step = { kind: 'seat', id: queueStep, input: undefined, form: queueForm };
      return perform<QueueRecord>({ ...step, run: () => of(now) }).pipe(
        // Who has left does not have the place, whatever was recorded before.
        map((then) => (as === undefined ? now : then)),
      );
    }),
  );
};

const messageOf = ({ message }: Interrupt): Interrupt => (message === undefined ? {} : { message });

const superseding: Layer = {
  name: 'superseded',
  priority: 56,
  call:
    ({ interruption, local }) =>
    (next) =>
    (call) => {
      if (local(placeOfCall).turn?.as !== 'superseded') return next(call);
      interruption.trigger({});
      return next({ ...call, status: 'interrupted' });
    },
};

const counting = ({ record }: SessionPlace): Layer => ({
  name: 'sessionUsage',
  priority: 10,
  inherit: true,
  step: ({ call: { callId }, hooks, local }) => {
    local(pendingApprovals).add = (toolCall, iteration) =>
      record.await({ callId, toolCall }, (change) => hooks.report(iteration, change));
    return (next) =>
      watchingSpending(
        next,
        '',
        { live: ({ usage }) => record.spend(usage), replayed: ({ usage }) => record.spend(usage) },
        local(replayedSteps),
      );
  },
});
