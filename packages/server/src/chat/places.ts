import type { KeptSession, SessionState } from '@millrace/core/sessions';
import { concat, concatMap, defer, ignoreElements, type Observable, of } from 'rxjs';
import { stateAfter, stateBefore } from './rewind.js';
import type { Runs } from './runs.js';

/** The place of a call in a conversation. Default: its end. */
export interface Placing {
  /** The call that the conversation continues after: later messages are taken back. `''`: all are. */
  readonly after?: string | undefined;
  /** The same, by ids of messages of the first call that is taken back. */
  readonly before?: readonly string[] | undefined;
  /** Prepares the conversation of the call instead, and emits that or another one. */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly prepare?: Prepare | undefined;
}

export type Prepare = (
  session: KeptSession,
  others: {
    /** Opens a conversation, by its session or, for protocols, by the id that its clients use. */
    readonly open$: (id: string) => Observable<KeptSession>;
    /** The calls of a session that have not ended. */
    readonly running: (sessionId: string) => readonly { readonly callId: string }[];
  },
) => Observable<KeptSession>;

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
  return {
    remember: (sessionId, id, callId) => {
      asked.set(keyOf(sessionId, id), callId);
      const [oldest] = asked.keys();
      if (asked.size > maxAsked && oldest !== undefined) asked.delete(oldest);
    },
    place$: (session, placing) =>
      defer(() => {
        const { after, before, prepare } = placing;
        if (prepare !== undefined) {
          return prepare(session, { open$: opened$, running: (id) => runs.ofSession(id) });
        }
        return after === undefined && before === undefined
          ? of(session)
          : concat(rewound$(session, placing), of(session));
      }),
  };
};
