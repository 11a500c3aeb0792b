import type { Message } from '@millrace/core';
import type { KeptSession, SessionState } from '@millrace/core/sessions';
import { concat, concatMap, ignoreElements, type Observable, of } from 'rxjs';
import { refused } from '../chat/guard.js';
import type { Prepare } from '../chat/places.js';
import { changed } from '../chat/rewind.js';

/** Begins a conversation with messages. */
export const beginWith =
  (messages: readonly Message[]): Prepare =>
  (session) =>
    messages.length === 0 ? of(session) : concat(begun$(session, messages), of(session));

/** Continues after a call. If there are later ones, begins the conversation `otherwise` with the messages up to that call. */
export const continueAfter =
  (callId: string, otherwise: string): Prepare =>
  (session, { open$, running }) =>
    session.saveState$().pipe(
      concatMap((state) => {
        const open = running(session.id);
        if (open.some((run) => run.callId === callId)) throw stillRuns();
        const messages = messagesThrough(state, callId);
        const isLast = open.length === 0 && messages.length === state.messages.length;
        if (isLast) return of(session);
        return open$(otherwise).pipe(concatMap((fork) => concat(begun$(fork, messages), of(fork))));
      }),
    );

const begun$ = (session: KeptSession, messages: readonly Message[]): Observable<never> =>
  concat(
    session.saveState$().pipe(concatMap((state) => session.loadState$({ ...state, messages }))),
    session.save$().pipe(ignoreElements()),
  );

/** The messages up to the last one of a call. */
const messagesThrough = ({ messages }: SessionState, callId: string): SessionState['messages'] => {
  const last = messages.findLastIndex(({ id }) => id.startsWith(`${callId}/`));
  if (last === -1) throw changed(callId);
  return messages.slice(0, last + 1);
};

const stillRuns = () =>
  refused(409, 'The earlier answer is still in progress. Continue after its end.');
