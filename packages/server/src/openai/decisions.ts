import { type AgentEvent, isMillraceError, type Layer, type MillraceError } from 'millrace';
import { catchError, concatMap, map, type Observable, reduce } from 'rxjs';
import type { ApprovalDesk } from '../approvals/pending-requests.js';
import type { VerdictOfClient } from '../approvals/read-verdict.js';
import type { Past } from '../chat/past.js';
import { fieldOf } from '../inbound.js';
import { createAsking, type Question, questionsAfter, reportAsking } from './asks.js';
import { refuse } from './refusals.js';
import { noSuchResponse, refAfter, type ResponseRef } from './response-ids.js';

interface Decidable {
  readonly id: string;
  readonly events$: (callId: string) => Observable<AgentEvent>;
  readonly past$: (callId: string) => Observable<Past>;
  readonly decide$: (verdicts: readonly VerdictOfClient[]) => Observable<string>;
}

/** The part of the protocol for servers with approvals. It comes with their queue. */
export interface OpenAiApprovals {
  /** The layer of each call. */
  readonly layer: Layer;
  readonly createAsking: typeof createAsking;
  readonly questionsOf$: typeof questionsOf$;
  readonly decisionsIn: typeof decisionsIn;
  readonly decided$: typeof decided$;
}

export const openAiApprovals = (desk: Pick<ApprovalDesk, 'requests$'>): OpenAiApprovals => ({
  layer: reportAsking(desk),
  ...{ createAsking, questionsOf$, decisionsIn, decided$ },
});

/** The answer of a client to a question. */
export interface Decision {
  readonly callId: string;
  /** The number of the question. */
  readonly number: number;
  readonly verdict: { readonly approved: boolean; readonly reason?: string };
  /** The field of the request that contains it. */
  readonly param: string;
}

/**
 * Reads the decisions of an input, which then contains nothing else. Ignores those whose tool call is in the input as
 * well: they are past decisions.
 */
const decisionsIn = (input: unknown, continues: boolean): readonly Decision[] => {
  const items: readonly unknown[] = Array.isArray(input) ? input : [];
  const past = new Set(
    items.map((it) => fieldOf(it, 'type') === 'mcp_call' && fieldOf(it, 'approval_request_id')),
  );
  const decisions = items.flatMap((item, index) =>
    fieldOf(item, 'type') === 'mcp_approval_response' &&
    !past.has(fieldOf(item, 'approval_request_id'))
      ? [decisionOf(item, `input[${index}]`)]
      : [],
  );
  if (decisions.length > 0 && decisions.length < items.length) {
    throw refuse('Send answers to approval requests without other items.', 'input');
  }
  if (decisions.length > 0 && !continues) {
    throw refuse(
      "Answers to approval requests need 'previous_response_id' or 'conversation'.",
      'previous_response_id',
    );
  }
  if (new Set(decisions.map(({ number }) => number)).size < decisions.length) {
    throw refuse('An approval request is answered twice.', 'input');
  }
  return decisions;
};

const decisionOf = (item: unknown, place: string): Decision => {
  const param = `${place}.approval_request_id`;
  const approved = fieldOf(item, 'approve');
  if (typeof approved !== 'boolean') {
    throw refuse("'approve' must be true or false.", `${place}.approve`);
  }
  const reason = fieldOf(item, 'reason') ?? '';
  if (typeof reason !== 'string' || reason.length > 1_000) {
    throw refuse("'reason' must be a string of up to 1,000 characters.", `${place}.reason`);
  }
  const id = fieldOf(item, 'approval_request_id');
  const [, callId, number] = /^mcpr_([\w-]+)_(\d{1,4})$/u.exec(String(id)) ?? [];
  if (typeof id !== 'string' || callId === undefined) throw noSuchRequest(param);
  const verdict = { approved, ...(reason !== '' && { reason }) };
  return { callId, number: Number(number), verdict, param };
};

/** A response whose call runs. */
export interface Begun<Chat> {
  readonly chat: Chat;
  readonly ref: ResponseRef;
  /** The errors before its call was resumed. */
  readonly errors?: Past;
}

/** Decides, and emits the conversation and the response that follows. Nothing is decided if one of the answers is refused. */
const decided$ = <Chat extends Decidable>(
  visit: { readonly chatOf$: (callId: string) => Observable<Chat> },
  decisions: readonly Decision[],
  previous: ResponseRef | undefined,
  conversation: string | undefined,
): Observable<Begun<Chat>> => {
  const [{ callId, param } = none] = decisions;
  const before = previous ?? { callId, decided: [] };
  const other = decisions.find((it) => it.callId !== before.callId);
  if (other !== undefined) throw noSuchRequest(other.param);
  const ref = refAfter(
    before,
    decisions.map(({ number }) => number).sort((a, b) => a - b),
  );
  return visit.chatOf$(callId).pipe(
    catchError((error: unknown) => {
      throw isMillraceError(error) && error.status === 404 ? noSuchRequest(param) : error;
    }),
    concatMap((chat) => {
      if (chat.id !== (conversation ?? chat.id)) throw noSuchRequest(param);
      return questionsOf$(chat, before).pipe(
        concatMap((questions) => chat.decide$(verdictsOn(questions, decisions))),
        catchError((error: unknown) => {
          const isDecided = isMillraceError(error) && error.status === 409;
          throw isDecided ? refuse(error.userMessage, param, 'already_decided', 409) : error;
        }),
        // Another client may have decided first.
        concatMap(() => questionsOf$(chat, before)),
        map((questions) => verdictsOn(questions, decisions)),
        concatMap(() => chat.past$(callId)),
        map(withErrors),
        map((errors) => ({ chat, ref, errors })),
      );
    }),
  );
};

const none = { callId: '', param: '' };

/** Keeps only the errors before a call was resumed. The encoder itself empties discarded items, so the event numbers stay the same. */
export const withErrors = (past: Past): Past => ({
  ...past,
  takenBack: past.takenBack.filter(({ type }) => type === 'error'),
});

/** The questions of a call so far. Errors with 404 if the response follows others. */
const questionsOf$ = (
  { events$ }: Pick<Decidable, 'events$'>,
  { callId, decided }: ResponseRef,
): Observable<readonly Question[]> =>
  events$(callId).pipe(
    reduce(questionsAfter, []),
    map((questions) => {
      if (decided.flat().every((number) => questions[number - 1])) return questions;
      throw noSuchResponse();
    }),
  );

const verdictsOn = (
  questions: readonly Question[],
  decisions: readonly Decision[],
): readonly VerdictOfClient[] =>
  decisions.map(({ number, verdict, param }) => {
    const question = questions[number - 1];
    if (question === undefined) throw noSuchRequest(param);
    if ((question.approved ?? verdict.approved) === verdict.approved) {
      return { id: question.id, verdict };
    }
    const message = 'It was already decided differently, or has expired.';
    throw refuse(message, param, 'already_decided', 409);
  });

const noSuchRequest = (param: string): MillraceError =>
  refuse('There is no such approval request.', param, 'not_found', 404);
