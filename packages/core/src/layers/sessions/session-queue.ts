import { AsyncSubject, concat, EMPTY, filter, map, Observable, startWith, Subject } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { MillraceError } from '../../values/errors.js';
import { type Interrupt, toInterrupt } from '../../flow/interruption.js';
import type { Message } from '../../values/message.js';
import { createTrampoline } from '../../flow/trampoline.js';
import type { RunningCall } from './steering.js';

/**
 * What a call does if its session is busy: it errors with `busy` (`reject`), waits for its turn (`queue`), interrupts the running and the waiting calls, then starts (`switch`), or adds its input to the running call and emits that call's events and reply (`steer`; of its own
 * options, only `demand`, `signal`, `callMs` and `interruptOn(…)` apply).
 */
export type OnBusy = 'reject' | 'queue' | 'switch' | 'steer';

export interface Occupant {
  readonly callId: string;
  readonly input: readonly Message[];
  readonly lineage: readonly CallInfo[];
  readonly interrupt: (interrupt: Interrupt) => boolean;
  readonly running?: RunningCall;
}

/** A call that waits until its session is free. */
export interface QueuedCall {
  readonly callId: string;
  readonly input: readonly Message[];
}

export interface Arrival {
  readonly inTurn$: Observable<never>;
  readonly begun: () => void;
}

export interface SessionQueue {
  readonly running: RunningCall | undefined;
  readonly queued: readonly QueuedCall[];
  readonly queued$: Observable<readonly QueuedCall[]>;
  arrive(): Arrival;
  /** Emits `started` once the place is the occupant's, and before that `superseded` if a later call makes it void; errors with `busy` or `queueFull`. Unsubscribing leaves the queue. */
  acquire$(occupant: Occupant, onBusy: OnBusy, maxQueue: number): Observable<Acquired>;
  release(occupant: Occupant): void;
  startNext(occupant: Occupant): void;
  readonly interrupt: (message?: string, callId?: string) => boolean;
  readonly clear: (message?: string) => number;
}

export type Acquired = 'started' | 'superseded';

interface Ticket {
  readonly occupant: Occupant;
  readonly begin: () => void;
  readonly supersede: () => void;
  hasBegun: boolean;
}

interface Row {
  readonly holder: Ticket;
  readonly former?: Occupant;
  readonly waiting: readonly Ticket[];
}

export const createSessionQueues = (): ((sessionId: string) => SessionQueue) => {
  const rows = new Map<string, Row>();
  const changed$ = new Subject<string>();
  // A call that ends at once wakes the next: they must not nest.
  const wakes = createTrampoline();
  const arriveAt = createArrivals();
  return (sessionId) => {
    const waiting = (): readonly Ticket[] => rows.get(sessionId)?.waiting ?? [];
    const queued = (): readonly QueuedCall[] =>
      Object.freeze(
        waiting().map(({ occupant: { callId, input } }) => Object.freeze({ callId, input })),
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
      if (row.holder.hasBegun) row.holder.occupant.interrupt({});
    };
    return {
      get running() {
        const holder = rows.get(sessionId)?.holder;
        return holder?.hasBegun === true ? holder.occupant.running : undefined;
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
      arrive: () => arriveAt(sessionId),
      acquire$: (occupant, onBusy, maxQueue) =>
        new Observable((subscriber) => {
          const ticket: Ticket = {
            occupant,
            hasBegun: false,
            begin: () => {
              ticket.hasBegun = true;
              subscriber.next('started');
            },
            supersede: () => subscriber.next('superseded'),
          };
          const row = rows.get(sessionId);
          if (row === undefined) {
            set({ holder: ticket, waiting: [] });
            ticket.begin();
            return;
          }
          const refusal = refusalOf(sessionId, row, occupant, onBusy, maxQueue);
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
      release: (occupant) => {
        const row = rows.get(sessionId);
        if (row?.holder.occupant !== occupant) return;
        const [holder, ...rest] = row.waiting;
        set(holder === undefined ? undefined : { holder, former: occupant, waiting: rest });
      },
      startNext: (occupant) => {
        const row = rows.get(sessionId);
        if (row?.former === occupant && !row.holder.hasBegun) wakes(row.holder.begin);
      },
      interrupt: (message, callId) => {
        const row = rows.get(sessionId);
        const tickets = row === undefined ? [] : [row.holder, ...row.waiting];
        // Without an id it is the call that runs: not the next one, which may have its place already.
        const ticket = tickets.find(({ occupant, hasBegun }) =>
          callId === undefined ? hasBegun : occupant.callId === callId,
        );
        return ticket?.occupant.interrupt(toInterrupt(message)) ?? false;
      },
      clear: (message) => {
        const tickets = waiting();
        tickets.forEach(({ occupant }) => occupant.interrupt(toInterrupt(message)));
        return tickets.length;
      },
    };
  };
};

const refusalOf = (
  sessionId: string,
  { holder, waiting }: Row,
  { lineage }: Occupant,
  onBusy: OnBusy,
  maxQueue: number,
): MillraceError | undefined => {
  const busyWith = holder.occupant.lineage.at(-1);
  const waitsForItself = busyWith !== undefined && lineage.includes(busyWith);
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

const createArrivals = (): ((sessionId: string) => Arrival) => {
  const lines = new Map<string, { readonly all$: Observable<never>; readonly waiting: number }>();
  return (sessionId) => {
    const { all$: before$, waiting } = lines.get(sessionId) ?? { all$: EMPTY, waiting: 0 };
    const begun$ = new AsyncSubject<never>();
    lines.set(sessionId, { all$: concat(before$, begun$), waiting: waiting + 1 });
    let isWaiting = true;
    return {
      inTurn$: before$,
      begun: () => {
        if (!isWaiting) return;
        isWaiting = false;
        const line = lines.get(sessionId);
        if (line === undefined || line.waiting === 1) lines.delete(sessionId);
        else lines.set(sessionId, { ...line, waiting: line.waiting - 1 });
        begun$.complete();
      },
    };
  };
};
