import { concatMap, map, type Observable, of } from 'rxjs';
import type { ApprovalQueue } from '../approvals/approval-queue.js';
import type { VerdictOfClient } from '../approvals/read-verdict.js';
import type { EncodingOptions } from '../parts/encode-parts.js';
import { type Client, clientOf, toUiMessages } from './history.js';
import type { Chat, StreamFormat, Visit } from './protocol.js';

/** How a client decides on approvals: with `?approvals=token`, while it reads the stream; otherwise with its next request. */
export const asked = (
  { request }: Visit,
  approvals: ApprovalQueue | undefined,
  answered?: readonly string[],
): Pick<EncodingOptions, 'approvals' | 'asking'> => {
  if (approvals === undefined) return {};
  return new URL(request.url).searchParams.get('approvals') === 'token'
    ? { approvals }
    : { approvals, asking: approvals.chat.asking(answered) };
};

/** Applies the decisions, and streams the rest of the call. */
export const decidedStream$ = (
  { decide$, past$, stream$ }: Chat,
  verdicts: readonly VerdictOfClient[],
  formatFor: (answered: readonly string[]) => StreamFormat,
): Observable<Response> =>
  decide$(verdicts).pipe(
    concatMap((callId) =>
      past$(callId).pipe(
        concatMap((past) => stream$(callId, formatFor(verdicts.map(({ id }) => id)), past)),
      ),
    ),
  );

/** Joins a running call: omits events that were taken back, and passes on which results the client has already brought. */
export const joining$ = (
  { past$, history$, stream$ }: Chat,
  callId: string,
  formatFor: (client: Client) => StreamFormat,
): Observable<Response> =>
  past$(callId).pipe(
    concatMap((past) =>
      (past.results.length === 0
        ? of({})
        : history$(callId).pipe(
            map(({ messages }) => clientOf(toUiMessages(messages), past.results)),
          )
      ).pipe(concatMap((client) => stream$(callId, formatFor(client), past))),
    ),
  );
