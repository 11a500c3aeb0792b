import { type InputMessage, type Message, type MillraceError, suspensionsIn } from '@millrace/core';
import type { KeptSession, SessionState } from '@millrace/core/sessions';
import { concat, concatMap, ignoreElements, type Observable, of } from 'rxjs';
import type { Prepare } from '../chat/places.js';
import { assertForClient, isForClient } from '../inbound.js';
import { assertAnswered, idsIn } from './messages.js';
import { refuse } from './refusals.js';

/** Begins a conversation with messages. */
export const beginWith =
  (messages: readonly Message[]): Prepare =>
  (session) =>
    messages.length === 0 ? of(session) : concat(begun$(session, messages), of(session));

/**
 * Continues after a call, with the results that it waits for. If there are later calls, begins the conversation `otherwise`
 * with the messages up to this one. A refused input begins nothing.
 */
export const continueAfter =
  (callId: string, otherwise: string, input: readonly InputMessage[]): Prepare =>
  (session, { open$, running }) =>
    session.saveState$().pipe(
      concatMap((state) => {
        const open = running(session.id);
        if (open.some((run) => run.callId === callId)) {
          throw conflict('The earlier answer is still in progress.');
        }
        const messages = messagesThrough(state, callId);
        const given = idsIn(input[0], 'tool_result');
        assertForClient(messages, given);
        const asked = suspensionsIn(messages).filter(isForClient);
        assertAnswered(new Set(asked.map(({ toolCall }) => toolCall.id)), given);
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

/** The messages up to the last one of a call, and of the calls after it that only brought results of the program. */
const messagesThrough = (
  { messages }: Pick<SessionState, 'messages'>,
  callId: string,
): SessionState['messages'] => {
  const last = messages.findLastIndex(({ id }) => id.startsWith(`${callId}/`));
  if (last === -1) throw conflict('The conversation has changed.');
  const next = messages[last + 1];
  return next?.role === 'tool' && next.content.every(({ from }) => from !== 'client')
    ? messagesThrough({ messages }, callOf(next))
    : messages.slice(0, last + 1);
};

const callOf = ({ id }: Message): string => id.slice(0, id.indexOf('/'));

const conflict = (message: string): MillraceError =>
  refuse(message, 'previous_response_id', 'conflict', 409);
