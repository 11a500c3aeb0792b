import type { AgentEvent } from 'millrace';
import { defer, filter, identity, type MonoTypeOperatorFunction } from 'rxjs';
import { placeless } from '../parts/encode-parts.js';

/** The last object that a client has: its call, the number of discarded attempts that its stream omits, and its place. */
interface Seen {
  readonly callId: string;
  readonly omitted: number;
  /** The sequence number of the event that it encodes. */
  readonly seq: number;
  /** Its index among the objects of that event. */
  readonly index: number;
}

/** Reads `Last-Event-ID`; `undefined` without one, or for another call. */
export const lastSeen = ({ headers }: Request, of?: string): Seen | undefined => {
  const [, callId, omitted, seq, index] =
    /^([\w-][\w.@-]*):(\d{1,6}):(\d{1,9})\.(\d{1,6})$/u.exec(headers.get('last-event-id') ?? '') ??
    [];
  return callId === undefined || (of !== undefined && of !== callId)
    ? undefined
    : { callId, omitted: Number(omitted), seq: Number(seq), index: Number(index) };
};

/** Numbers the objects of a stream by event: an object has the same place in every stream of a call. */
export const createPlace = (seen: Seen | undefined) => {
  let seq = 0;
  let index = -1;
  let isPlaceless = false;
  return {
    begin: (event: AgentEvent): void => {
      ({ seq } = event);
      index = -1;
    },
    /** Moves to the next object. Returns whether the client still needs it. */
    next: (object: object): boolean => {
      isPlaceless = placeless.has(object);
      if (isPlaceless) return true;
      index += 1;
      return seen === undefined || seq > seen.seq || (seq === seen.seq && index > seen.index);
    },
    id: (): string | undefined => (isPlaceless ? undefined : `${seq}.${index}`),
  };
};

/**
 * Omits errors before a call was resumed, and the first attempts at messages that were discarded. A later attempt has the
 * same id.
 */
export const withoutTakenBack = (
  takenBack: readonly AgentEvent[],
  attempts: number,
): MonoTypeOperatorFunction<AgentEvent> => {
  const errors = new Set(takenBack.flatMap(({ type, seq }) => (type === 'error' ? [seq] : [])));
  const discarded = discardedIn(takenBack).slice(0, attempts);
  if (errors.size + discarded.length === 0) return identity;
  return (event$) =>
    defer(() => {
      const left = [...discarded];
      return event$.pipe(
        filter((event) => {
          if (event.type === 'error') return !errors.has(event.seq);
          if (!('messageId' in event)) return true;
          const at = left.findIndex((id) => id === event.messageId);
          if (at !== -1 && event.type === 'messageDiscarded') left.splice(at, 1);
          return at === -1;
        }),
      );
    });
};

/** The ids of the messages, once for each attempt. */
export const discardedIn = (events: readonly AgentEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'messageDiscarded' ? [event.messageId] : []));
