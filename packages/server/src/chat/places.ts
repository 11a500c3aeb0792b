import type { Message } from '@millrace/core';
import type { KeptSession, SessionState } from '@millrace/core/sessions';
import { concat, concatMap, defer, ignoreElements, type Observable, of } from 'rxjs';
import { refused } from './guard.js';
import { messagesThrough, stateAfter, stateBefore } from './rewind.js';
import type { Runs } from './runs.js';

/** The place of a call in a conversation. Default: its end. */
export interface Placing {
  /** The call that the conversation continues after: later messages are taken back. `''`: all are. */
  readonly after?: string | undefined;
  /** The same, by ids of messages of the first call that is taken back. */
  readonly before?: readonly string[] | undefined;
  /** The call that it continues after. If there are later ones, it begins the conversation `otherwise` with the messages up to that call. */
  readonly from?: { readonly callId: string; readonly otherwise: string } | undefined;
  /** The messages before the input, of a conversation that begins with it. */
  readonly history?: readonly Message[] | undefined;
}

interface Places {
  /** Keeps the client's id of a question. */
  remember(sessionId: string, id: string, callId: string): void;
  /** Prepares a session for a call, and emits the one to call. */
  place$(session: KeptSession, placing: Placing): Observable<KeptSession>;
}

/** Ids of clients that are kept: an older question is found by its own id. */
const maxAsked = 10_000;

export const createPlaces = (
  runs: Runs,
  opened$: (sessionId: string) => Observable<KeptSession>,
): Places => {
  /** The calls of questions, by session and the id that their client has given them. */
  const asked = new Map<string, string>();
  const keyOf = (sessionId: string, id: string): string => `${sessionId}\n${id}`;
  const rewound$ = (session: KeptSession, { after, before = [] }: Placing): Observable<never> =>
    session.saveState$().pipe(
      concatMap((known) => {
        const open = runs.ofSession(session.id);
        const calls = before.map(
          (id) => asked.get(keyOf(session.id, id)) ?? id.replace(/\/input\/.*$/su, ''),
        );
        const isRunning = open.some(({ callId }) => callId === after || calls.includes(callId));
        const cut = (state: SessionState): SessionState =>
          after === undefined ? stateBefore(state, calls, isRunning) : stateAfter(state, after);
        // Throws before anything is stopped. The calls that are open are taken back in any case.
        if (!isRunning) cut(known);
        runs.stop(session.id);
        return concat(
          ...open.map(({ over$ }) => over$.pipe(ignoreElements())),
          session.saveState$().pipe(concatMap((state) => session.loadState$(cut(state)))),
          session.save$().pipe(ignoreElements()),
        );
      }),
    );
  const begun$ = (session: KeptSession, messages: readonly Message[]): Observable<never> =>
    concat(
      session.saveState$().pipe(concatMap((state) => session.loadState$({ ...state, messages }))),
      session.save$().pipe(ignoreElements()),
    );
  const continued$ = (
    session: KeptSession,
    { callId, otherwise }: NonNullable<Placing['from']>,
  ): Observable<KeptSession> =>
    session.saveState$().pipe(
      concatMap((state) => {
        const open = runs.ofSession(session.id);
        if (open.some((run) => run.callId === callId)) throw stillRuns();
        const messages = messagesThrough(state, callId);
        const isLast = open.length === 0 && messages.length === state.messages.length;
        if (isLast) return of(session);
        return opened$(otherwise).pipe(
          concatMap((fork) => concat(begun$(fork, messages), of(fork))),
        );
      }),
    );
  return {
    remember: (sessionId, id, callId) => {
      asked.set(keyOf(sessionId, id), callId);
      const [oldest] = asked.keys();
      if (asked.size > maxAsked && oldest !== undefined) asked.delete(oldest);
    },
    place$: (session, placing) =>
      defer(() => {
        const { after, before, from, history = [] } = placing;
        if (from !== undefined) return continued$(session, from);
        if (after !== undefined || before !== undefined) {
          return concat(rewound$(session, placing), of(session));
        }
        return history.length === 0 ? of(session) : concat(begun$(session, history), of(session));
      }),
  };
};

const stillRuns = () =>
  refused(409, 'The earlier answer is still in progress. Continue after its end.');
