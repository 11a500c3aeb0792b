import { MillraceError } from 'millrace';
import {
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  mergeMap,
  type Observable,
  of,
  take,
  timeout,
} from 'rxjs';
import type { Conversations } from '../chat/conversations.js';
import type { Past } from '../chat/past.js';
import { badRequest, oneForEach } from '../inbound.js';
import { checkAgainst } from './already-decided.js';
import { digestOf } from './claims.js';
import type { ApprovalDesk } from './pending-requests.js';
import { questionOf, type ReadVerdict, readVerdict, type VerdictOfClient } from './read-verdict.js';

/** How long to wait until a resumed call asks again, in milliseconds. */
const waitMs = 10_000;

/**
 * Decides on tool calls of one call of a session, and emits the id of the call. Repeating a decision has no effect, since
 * clients resend them. Errors with `invalidResume` (409), and decides nothing, if a tool call already has a different
 * decision, which the error names.
 */
export const decided$ = (
  approvals: ApprovalDesk,
  conversations: Pick<Conversations, 'past$' | 'sessionOf$' | 'runs$'>,
  sessionId: string,
  verdicts: readonly VerdictOfClient[],
): Observable<string> =>
  defer(() => {
    const read = answersIn(verdicts);
    const [callId = '', ...others] = new Set(read.map((it) => it.callId));
    if (callId === '' || others.length > 0) throw badRequest('it has verdicts on several calls');
    const past$ = conversations.past$(callId);
    return conversations.sessionOf$(callId).pipe(
      concatMap((owner) => {
        if (owner !== sessionId) throw noLonger(404);
        // Opening the session resumes a call that another process left unfinished.
        return conversations.runs$(sessionId);
      }),
      concatMap((runs) =>
        past$.pipe(
          concatMap(({ questions }) => {
            read.forEach((answer) => {
              checkSettled(questions, answer);
            });
            const open = read.filter((answer) => isOpen(questions, answer));
            if (open.length > 0 && !runs.some((run) => run.callId === callId)) throw noLonger(410);
            const decisions = open.map((answer) =>
              from(askedOn(questions, answer)).pipe(
                concatMap((digest) => decision$(approvals, past$, answer, digest)),
              ),
            );
            return concat(...decisions, of(callId));
          }),
        ),
      ),
    );
  });

/** The verdicts by their questions, which may come more than once. */
const answersIn = (verdicts: readonly VerdictOfClient[]): readonly Answer[] => {
  const answers = verdicts.map(({ id, verdict }): readonly [string, Answer] => {
    const { toolCallId, question } = questionOf(id);
    const { callId, localId } = idsIn(toolCallId);
    const answer = { callId, localId, question, verdict: readVerdict(verdict) };
    return [JSON.stringify([callId, localId, question]), answer];
  });
  return [...oneForEach(answers).values()];
};

interface Answer {
  readonly callId: string;
  readonly localId: string;
  readonly question: number;
  readonly verdict: ReadVerdict;
}

const isOpen = (questions: Past['questions'], { localId, question }: Answer): boolean => {
  const last = questions.get(localId);
  return last?.isOpen === true && last.question === question;
};

/** If a tool call now waits with another question, that one applies instead. */
const checkSettled = (questions: Past['questions'], answer: Answer): void => {
  const asked = questions.get(answer.localId);
  if (asked === undefined) return;
  const { isOpen: isWaiting, decisions } = asked;
  if (isWaiting && !decisions.has(answer.question)) return;
  checkAgainst(decisions, answer.question, answer.verdict);
};

/** The digest of the tool call that a question was on. */
const askedOn = async (questions: Past['questions'], { localId }: Answer): Promise<string> => {
  const asked = questions.get(localId);
  return asked === undefined ? '' : digestOf(asked.toolCall);
};

/** Decides, unless another client has decided meanwhile, or the call asks about another input now. */
const decision$ = (
  approvals: ApprovalDesk,
  past$: Observable<Past>,
  answer: Answer,
  digest: string,
): Observable<never> => {
  const { callId, localId, verdict } = answer;
  const late$ = past$.pipe(
    concatMap(({ questions }) => {
      if (isOpen(questions, answer)) throw noLonger(410);
      checkSettled(questions, answer);
      return EMPTY;
    }),
  );
  return approvals.requests$.pipe(
    mergeMap((pending) =>
      pending.filter((it) => it.callId === callId && it.toolCallId === localId),
    ),
    take(1),
    timeout({ first: waitMs, with: () => late$ }),
    concatMap((it) => (it.digest === digest ? from(approvals.decide(it.token, verdict)) : EMPTY)),
    ignoreElements(),
  );
};

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
