import { type AgentEvent, type Demand, openDemand } from '@millrace/core';
import { merge, Observable, Subject } from 'rxjs';

/**
 * The latest events of a call that runs here, so that its readers need not read the store. No reader sees what a crash
 * could take back without a word: events are shown once they are durable, and up to 64 further deltas of a message that
 * the store knows, because a call that is resumed discards that message, and leaves out as many numbers.
 */
export interface Tail {
  push(event: AgentEvent): void;
  /** The event with this `seq` is durable, and all before. */
  written(seq: number): void;
  /** No more events will come, nor become durable. */
  end(): void;
  /** The `seq` before its first event, if it still has that. The events before belong to earlier runs of the call. */
  readonly begin: number | undefined;
  /** Whether it has all events after the one with this `seq`. */
  has(afterSeq: number): boolean;
  /**
   * Emits the events after the one with this `seq`, those that are there and new ones, while the demand is open. Completes
   * at the end, or once the reader is so late that it needs the store.
   */
  follow$(afterSeq: number, demand?: Demand): Observable<AgentEvent>;
}

/** The number of events that are kept at least. */
const mostKept = 4_096;

/** The number of deltas that a store merges into one record. */
const mostAhead = 64;

export const createTail = (): Tail => {
  const changed$ = new Subject<void>();
  let events: AgentEvent[] = [];
  /** The number of events before these, and the `seq` of the last one of them. */
  let omitted = 0;
  let omittedSeq = 0;
  /** The number of durable events, and the `seq` of the last one. */
  let durable = 0;
  let durableSeq = 0;
  let hasEnded = false;
  /** The message of the last durable event, if it is a delta. */
  let known: string | undefined;
  const at = (index: number): AgentEvent | undefined => events[index - omitted];
  const total = (): number => omitted + events.length;
  const isShown = (index: number): boolean => {
    const event = at(index);
    if (event === undefined) return false;
    if (index < durable) return true;
    return messageIn(event) === known && known !== undefined && event.seq <= durableSeq + mostAhead;
  };
  const settle = (): void => {
    if (omittedSeq <= durableSeq) durable = Math.max(durable, omitted);
    for (
      let event = at(durable);
      event !== undefined && event.seq <= durableSeq;
      event = at(durable)
    ) {
      durable += 1;
      known = messageIn(event);
    }
  };
  return {
    push: (event) => {
      if (total() === 0) omittedSeq = event.seq - 1;
      events.push(event);
      settle();
      if (events.length > 2 * mostKept) {
        omittedSeq = events[mostKept - 1]?.seq ?? omittedSeq;
        omitted += mostKept;
        events = events.slice(mostKept);
      }
      changed$.next();
    },
    written: (seq) => {
      durableSeq = seq;
      settle();
      changed$.next();
    },
    end: () => {
      hasEnded = true;
      changed$.next();
    },
    get begin() {
      return omitted === 0 ? omittedSeq : undefined;
    },
    has: (afterSeq) => omittedSeq <= afterSeq,
    follow$: (afterSeq, demand = openDemand) =>
      new Observable((subscriber) => {
        const first = events.findIndex(({ seq }) => seq > afterSeq);
        let next = first === -1 ? total() : omitted + first;
        let isPassing = false;
        const pass = (): void => {
          if (isPassing) return;
          isPassing = true;
          while (demand.isOpen && !subscriber.closed && isShown(next)) {
            const event = at(next);
            next += 1;
            if (event !== undefined) subscriber.next(event);
          }
          isPassing = false;
          if (next < omitted || (hasEnded && !isShown(next))) subscriber.complete();
        };
        return merge(demand.open$, changed$).subscribe({
          next: pass,
          error: (error: unknown) => subscriber.error(error),
        });
      }),
  };
};

const messageIn = (event: AgentEvent): string | undefined =>
  'delta' in event && 'messageId' in event ? event.messageId : undefined;
