import { MillraceError } from '@millrace/core';
import {
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  map,
  mergeMap,
  type Observable,
  of,
  take,
  throwError,
  timeout,
} from 'rxjs';
import type { Conversations } from '../chat/conversations.js';
import { badRequest } from '../inbound.js';
import type { ApprovalDesk } from './pending-requests.js';
import type { ReadVerdict, VerdictOfClient } from './read-verdict.js';

/** Until a call that was resumed asks again, in milliseconds. */
const waitMs = 10_000;

/** Decides on tool calls of one call of a session, and emits the id of the call. */
export const decided$ = (
  approvals: ApprovalDesk,
  conversations: Pick<Conversations, 'past$' | 'sessionOf$' | 'runs$'>,
  sessionId: string,
  verdicts: readonly VerdictOfClient[],
): Observable<string> =>
  defer(() => {
    const read = verdicts.map(({ toolCallId, ...verdict }) => ({ ...idsIn(toolCallId), verdict }));
    const [callId = '', ...others] = new Set(read.map((it) => it.callId));
    if (callId === '' || others.length > 0) throw badRequest('it has verdicts on several calls');
    const ended$ = conversations.past$(callId);
    return conversations.sessionOf$(callId).pipe(
      concatMap((owner) => {
        if (owner !== sessionId) throw noLonger(404);
        // Opens the session: a call that another process has left is resumed.
        return conversations.runs$(sessionId);
      }),
      concatMap((runs) => ended$.pipe(map(({ undecided }) => ({ runs, undecided })))),
      concatMap(({ runs, undecided }) => {
        const isOpen = runs.some((run) => run.callId === callId);
        const open = read.filter(({ localId }) => undecided.includes(localId));
        if (open.length > 0 && !isOpen) throw noLonger(410);
        const decisions = open.map(({ localId, verdict }) =>
          decision$(approvals, callId, localId, verdict),
        );
        return concat(...decisions, of(callId));
      }),
    );
  });

const decision$ = (
  approvals: ApprovalDesk,
  callId: string,
  localId: string,
  verdict: ReadVerdict,
): Observable<never> =>
  approvals.requests$.pipe(
    mergeMap((pending) =>
      pending.filter((it) => it.callId === callId && it.toolCallId === localId),
    ),
    take(1),
    timeout({ first: waitMs, with: () => throwError(() => noLonger(410)) }),
    concatMap(({ token }) => from(approvals.decide(token, verdict))),
    ignoreElements(),
  );

/** The ids of the call and of the tool call within it: clients know `call/message/tool`. */
const idsIn = (toolCallId: string): { readonly callId: string; readonly localId: string } => {
  const [, callId, localId] = /^([^/]+)\/[^/]+\/(.+)$/u.exec(toolCallId) ?? [];
  if (callId === undefined || localId === undefined) throw badRequest('it has an unknown id');
  return { callId, localId };
};

const noLonger = (status: 404 | 410): MillraceError => {
  const message =
    status === 404 ? 'There is no such request.' : 'This request is no longer pending.';
  return new MillraceError('invalidResume', message, { status, userMessage: message });
};
