import type { AgentEvent, Demand } from '@millrace/core';
import {
  connect,
  defer,
  endWith,
  filter,
  identity,
  ignoreElements,
  interval,
  map,
  merge,
  type MonoTypeOperatorFunction,
  takeUntil,
} from 'rxjs';

/** The last event that a client has: the call, the number of discarded attempts that its stream omits, and the index. */
export const lastSeen = ({
  headers,
}: Request):
  { readonly callId: string; readonly omitted: number; readonly index: number } | undefined => {
  const [, callId, omitted, index] =
    /^([\w-][\w.@-]*):(\d{1,6}):(\d{1,9})$/u.exec(headers.get('last-event-id') ?? '') ?? [];
  return callId === undefined
    ? undefined
    : { callId, omitted: Number(omitted), index: Number(index) };
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

/** Sends a comment at an interval, so that proxies do not take silence for the end. */
export const withHeartbeats = (ms: number, demand: Demand): MonoTypeOperatorFunction<string> =>
  connect((text$) =>
    merge(
      text$,
      interval(ms).pipe(
        filter(() => demand.isOpen),
        map(() => ': \n\n'),
        takeUntil(text$.pipe(ignoreElements(), endWith(undefined))),
      ),
    ),
  );
