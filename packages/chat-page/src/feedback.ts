import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import type { Route, Visit } from '@millrace/server/chat';
import { concatMap, from, map, type Observable } from 'rxjs';
import { callOf } from './answers.js';
import { badRequest } from './uncertain.js';

/** The rating of an answer by a user. */
export interface Feedback {
  /** The user, if the server has users. */
  readonly user?: string;
  readonly chatId: string;
  /** The first call of the answer: its id in the store, in traces and in the page. */
  readonly callId: string;
  readonly isGood: boolean;
}

/** Takes the feedback of a user. A Promise that it returns is awaited; if it fails, the user may try again. */
export type OnFeedback = (feedback: Feedback) => unknown;

/** The route for feedback on answers of the user's own conversations. */
export const feedbackRoute = (api: string, onFeedback: OnFeedback): Route => ({
  method: 'POST',
  path: `${api}/chat/:id/feedback`,
  answer$: (visit) => taken$(visit, onFeedback),
});

const taken$ = (
  { chat, body$, user, ids: { id = '' } }: Visit,
  onFeedback: OnFeedback,
): Observable<Response> =>
  body$.pipe(
    concatMap((body) => {
      const { callId, isGood } = isRecord(body) ? body : {};
      if (typeof callId !== 'string' || typeof isGood !== 'boolean') {
        throw badRequest("it needs a 'callId' and 'isGood'");
      }
      return chat(id)
        .history$()
        .pipe(
          concatMap(({ messages }) => {
            if (!messages.some((message) => callOf(message.id) === callId)) {
              throw badRequest('the conversation has no such answer', 409);
            }
            return from(
              given(onFeedback, {
                ...(user !== undefined && { user }),
                chatId: id,
                callId,
                isGood,
              }),
            );
          }),
        );
    }),
    map(() => new Response(null, { status: 204 })),
  );

const given = async (onFeedback: OnFeedback, feedback: Feedback): Promise<void> => {
  try {
    await onFeedback(feedback);
  } catch (cause) {
    throw new MillraceError('unknown', "'onFeedback' of the chat page failed.", {
      cause,
      userMessage: 'Your feedback was not saved. Try again.',
    });
  }
};
