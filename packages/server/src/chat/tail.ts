import { type AgentEvent, type Demand, openDemand } from 'millrace';
import { Observable, Subject } from 'rxjs';

/**
 * The latest events of a call that runs in this process, so its readers need not read the store. Readers never see
 * anything that a crash could silently take back: an event is shown once it is durable. Up to 64 further deltas of a
 * message that the store knows are shown earlier, because a resumed call discards that message and skips as many sequence
 * numbers.
 */
export interface Tail {
  push(event: AgentEvent): void;
  /** Marks the event with this `seq`, and all earlier ones, as durable. */
  written(seq: number): void;
  /** Marks the end: no more events will arrive or become durable. */
  end(): void;
  /** The `seq` before the first event of this run, as long as that event is kept. Earlier events belong to earlier runs of the call. */
  begin(): number | undefined;
  /** Whether it has all events after the one with this `seq`. */
  has(afterSeq: number): boolean;
  /**
   * Emits the kept and new events after the one with this `seq`, while the demand is open. Completes at the end, or once
   * the reader is so slow that it needs the store.
   */
  follow$(afterSeq: number, demand?: Demand): Observable<AgentEvent>;
}

/** The minimum number of events that are kept. */
const mostKept = 4_096;

/** The number of deltas that a store merges into one record. */
const mostAhead = 64;

export const createTail = (): Tail => {
  const changed$ = new Subject<void>();
  const kept = createKept();
  const durability = createDurability(kept);
  let hasEnded = false;
  return {
    push: (event) => {
      kept.push(event);
      durability.update();
      kept.trim();
      changed$.next();
    },
    written: (seq) => {
      durability.update(seq);
      changed$.next();
    },
    end: () => {
      hasEnded = true;
      changed$.next();
    },
    begin: () => (kept.omitted() === 0 ? kept.omittedSeq() : undefined),
    has: (afterSeq) => kept.omittedSeq() <= afterSeq,
    follow$: (afterSeq, demand = openDemand) =>
      new Observable((subscriber) => {
        let next = kept.positionAfter(afterSeq);
        let isPassing = false;
        const pass = (): void => {
          if (isPassing) return;
          isPassing = true;
          while (demand.isOpen && !subscriber.closed && durability.isShown(next)) {
            const event = kept.at(next);
            next += 1;
            if (event !== undefined) subscriber.next(event);
          }
          isPassing = false;
          const isOver = hasEnded && !durability.isShown(next);
          if (next < kept.omitted() || isOver) subscriber.complete();
        };
        const error = (cause: unknown): void => subscriber.error(cause);
        subscriber.add(demand.open$.subscribe({ next: pass, error }));
        subscriber.add(changed$.subscribe({ next: pass, error }));
      }),
  };
};

/** The latest events by their position, which counts all events. */
const createKept = () => {
  let events: AgentEvent[] = [];
  /** The number of events before these, and the `seq` of the last one of them. */
  let omitted = 0;
  let omittedSeq = 0;
  const total = (): number => omitted + events.length;
  return {
    omitted: () => omitted,
    omittedSeq: () => omittedSeq,
    at: (position: number): AgentEvent | undefined => events[position - omitted],
    positionAfter: (afterSeq: number): number => {
      const first = events.findIndex(({ seq }) => seq > afterSeq);
      return first === -1 ? total() : omitted + first;
    },
    push: (event: AgentEvent): void => {
      if (total() === 0) omittedSeq = event.seq - 1;
      events.push(event);
    },
    trim: (): void => {
      if (events.length <= 2 * mostKept) return;
      omittedSeq = events[mostKept - 1]?.seq ?? omittedSeq;
      omitted += mostKept;
      events = events.slice(mostKept);
    },
  };
};

/** Decides which events may be shown. */
const createDurability = (kept: ReturnType<typeof createKept>) => {
  /** The number of durable events, and the `seq` of the last one. */
  let durable = 0;
  let durableSeq = 0;
  /** The message of the last durable event, if it is a delta. */
  let known: string | undefined;
  return {
    isShown: (position: number): boolean => {
      const event = kept.at(position);
      if (event === undefined) return false;
      if (position < durable) return true;
      const isOfKnown = known !== undefined && messageIn(event) === known;
      return isOfKnown && event.seq <= durableSeq + mostAhead;
    },
    update: (seq = durableSeq): void => {
      durableSeq = seq;
      if (kept.omittedSeq() <= durableSeq) durable = Math.max(durable, kept.omitted());
      let event = kept.at(durable);
      while (event !== undefined && event.seq <= durableSeq) {
        durable += 1;
        known = messageIn(event);
        event = kept.at(durable);
      }
    },
  };
};

const messageIn = (event: AgentEvent): string | undefined =>
  'delta' in event && 'messageId' in event ? event.messageId : undefined;
