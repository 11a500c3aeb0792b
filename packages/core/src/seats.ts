import { filter, map, Observable, startWith, Subject } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { OnBusy } from './call-options.js';
import type { CallContext } from './call-context.js';
import { MillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { toInterrupt } from './interruption.js';
import type { Message } from './message.js';
import type { Steering } from './steering.js';
import { createTrampoline } from './trampoline.js';

/** A call that runs in a session, or waits for its turn. */
export interface SeatedCall extends Pick<
  CallContext,
  'call' | 'events$' | 'reply$' | 'interruption' | 'demand' | 'scheduler' | 'lineage'
> {
  readonly hooks: Pick<Hooks, 'report' | 'iteration'>;
  readonly input: readonly Message[];
  readonly steering: Steering;
}

/** A call that waits until its session is free. */
export interface QueuedCall {
  readonly callId: string;
  readonly input: readonly Message[];
}

/** The one place that a session has for a running call. */
export interface Seat {
  readonly sessionId: string;
  readonly running: SeatedCall | undefined;
  readonly queued: readonly QueuedCall[];
  /** Emits the list on subscription, and each change of it. */
  readonly queued$: Observable<readonly QueuedCall[]>;
  /** Emits `seated` once the place is the call's, and before that `superseded` where a later call makes it void; errors with `busy` or `queueFull`. Whoever leaves before no longer waits. */
  take$(call: SeatedCall, onBusy: OnBusy, maxQueue: number): Observable<Seated>;
  /** Gives the place on, if the call has it. */
  leave(call: CallInfo): void;
  /** Lets the call begin that got the place from this one: not before its last event has been heard. */
  wake(call: CallInfo): void;
  /** Interrupts the running call, or the one of this id, also where it waits; false when there is none. */
  readonly interrupt: (message?: string, callId?: string) => boolean;
  /** Interrupts all that wait, and says how many they were. */
  readonly empty: (message?: string) => number;
}

/** What becomes of a call that waits for its place. */
export type Seated = 'seated' | 'superseded';

/** The running calls of an agent's sessions. A session is in it only while a call of its runs or waits. */
export interface Seats {
  seatOf(sessionId: string): Seat;
}

interface Ticket {
  readonly call: SeatedCall;
  readonly begin: () => void;
  /** A later call has made it void while it waits. */
  readonly supersede: () => void;
  hasBegun: boolean;
}

interface Row {
  readonly holder: Ticket;
  /** Who had the place before. */
  readonly former?: CallInfo;
  readonly waiting: readonly Ticket[];
}

/** Makes the seats of one agent. */
export const createSeats = (): Seats => {
  const rows = new Map<string, Row>();
  const changed$ = new Subject<string>();
  // A call that ends at once wakes the next: they must not nest.
  const wakes = createTrampoline();

  const seatOf = (sessionId: string): Seat => {
    const waiting = (): readonly Ticket[] => rows.get(sessionId)?.waiting ?? [];
    const queued = (): readonly QueuedCall[] =>
      Object.freeze(
        waiting().map(({ call: { call, input } }) => Object.freeze({ callId: call.callId, input })),
      );
    const set = (row: Row | undefined): void => {
      const before = waiting();
      if (row === undefined) rows.delete(sessionId);
      else rows.set(sessionId, row);
      if (before !== waiting() && before.length + waiting().length > 0) changed$.next(sessionId);
    };
    const enqueue = (row: Row, ticket: Ticket, onBusy: OnBusy): void => {
      // Before anybody hears of the change, and does something about it.
      if (onBusy === 'switch') {
        [row.holder, ...row.waiting].forEach((earlier) => {
          if (!earlier.hasBegun) earlier.supersede();
        });
      }
      set({ ...row, waiting: [...row.waiting, ticket] });
      if (onBusy !== 'switch') return;
      if (row.holder.hasBegun) row.holder.call.interruption.trigger({});
    };
    return {
      sessionId,
      get running() {
        const holder = rows.get(sessionId)?.holder;
        return holder?.hasBegun === true ? holder.call : undefined;
      },
      get queued() {
        return queued();
      },
      // Made for whoever asks: most sessions are idle, and few are watched.
      get queued$() {
        return changed$.pipe(
          filter((id) => id === sessionId),
          startWith(sessionId),
          map(queued),
        );
      },
      take$: (call, onBusy, maxQueue) =>
        new Observable((subscriber) => {
          const ticket: Ticket = {
            call,
            hasBegun: false,
            begin: () => {
              ticket.hasBegun = true;
              subscriber.next('seated');
            },
            supersede: () => subscriber.next('superseded'),
          };
          const row = rows.get(sessionId);
          if (row === undefined) {
            set({ holder: ticket, waiting: [] });
            ticket.begin();
            return;
          }
          const refusal = refusalOf(sessionId, row, call, onBusy, maxQueue);
          if (refusal !== undefined) {
            subscriber.error(refusal);
            return;
          }
          // Before it waits: the call that it interrupts may end, and wake it, at once.
          subscriber.add(() => {
            const now = rows.get(sessionId);
            if (now?.waiting.includes(ticket) === true) {
              set({ ...now, waiting: now.waiting.filter((other) => other !== ticket) });
            }
          });
          enqueue(row, ticket, onBusy);
        }),
      leave: (call) => {
        const row = rows.get(sessionId);
        if (row?.holder.call.call !== call) return;
        const [holder, ...rest] = row.waiting;
        set(holder === undefined ? undefined : { holder, former: call, waiting: rest });
      },
      wake: (call) => {
        const row = rows.get(sessionId);
        if (row?.former === call && !row.holder.hasBegun) wakes(row.holder.begin);
      },
      interrupt: (message, callId) => {
        const row = rows.get(sessionId);
        const tickets = row === undefined ? [] : [row.holder, ...row.waiting];
        // Without an id it is the call that runs: not the next one, which may have its place already.
        const ticket = tickets.find(({ call: { call }, hasBegun }) =>
          callId === undefined ? hasBegun : call.callId === callId,
        );
        return ticket?.call.interruption.trigger(toInterrupt(message)) ?? false;
      },
      empty: (message) => {
        const tickets = waiting();
        tickets.forEach(({ call }) => call.interruption.trigger(toInterrupt(message)));
        return tickets.length;
      },
    };
  };
  return { seatOf };
};

const refusalOf = (
  sessionId: string,
  { holder, waiting }: Row,
  { lineage }: SeatedCall,
  onBusy: OnBusy,
  maxQueue: number,
): MillraceError | undefined => {
  const waitsForItself = lineage.includes(holder.call.call);
  if (onBusy === 'reject' || onBusy === 'steer' || waitsForItself) return busy(sessionId);
  return waiting.length < maxQueue ? undefined : full(sessionId, maxQueue);
};

const busy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' is busy with another call. Wait until that has ended, interrupt it, or say with 'onBusy' what to do: 'queue', 'switch' or 'steer'.`,
  );

const full = (sessionId: string, maxQueue: number): MillraceError =>
  new MillraceError(
    'queueFull',
    `${maxQueue} calls wait for the session '${sessionId}' already ('maxQueue'). Try again when some have ended.`,
    { retryable: true },
  );
