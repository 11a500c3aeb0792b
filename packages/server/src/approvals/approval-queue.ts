import { type ApprovalRequest, type Approver, MillraceError, type Verdict } from 'millrace';
import { canonicalJson, checkOptions, isDelay, type Rule } from 'millrace/values';
import {
  asyncScheduler,
  concatMap,
  defer,
  finalize,
  firstValueFrom,
  from,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  Subject,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Conversations } from '../chat/conversations.js';
import { type OpenAiApprovals, openAiApprovals } from '../openai/decisions.js';
import type { Asking } from '../parts/part.js';
import { type ApprovalKey, keysOf } from './approval-keys.js';
import { approvalsHandler } from './approvals-handler.js';
import {
  type Claims,
  createNonce,
  digestOf,
  hashOf,
  isShowable,
  plainArguments,
} from './claims.js';
import { checkSame } from './already-decided.js';
import { decided$ } from './decisions.js';
import { type ReadVerdict, readVerdict, type VerdictOfClient } from './read-verdict.js';
import { askByMessage } from './until-asked.js';
import { createTokenSigner, type TokenSigner } from './token-signer.js';
import {
  type ApprovalDesk,
  createPendingRequests,
  hasExpired,
  type PendingApproval,
  type PendingRequest,
  type PendingRequests,
} from './pending-requests.js';

/** Options of `approvalQueue`. */
export interface ApprovalQueueOptions {
  /**
   * The key that signs tokens, with at least 32 bytes. With a list, the first key signs and all keys verify: to rotate
   * keys, prepend the new key, and remove the old one when its tokens have expired.
   */
  readonly key: ApprovalKey | readonly ApprovalKey[];
  /** How long a request waits for its decision, in milliseconds. Default: 300,000, five minutes. */
  readonly expiresInMs?: number | undefined;
  /**
   * Whether clients may edit the input that they approve, or a test of an edit. An edit is validated, and goes to all other
   * deciders. An input equal to the one shown is not an edit. Default: false.
   */
  readonly edits?:
    | boolean
    | ((request: ApprovalRequest, input: Readonly<Record<string, unknown>>) => boolean)
    | undefined;
}

/** Holds tool calls until a client approves or denies them. */
export interface ApprovalQueue extends ApprovalDesk {
  /**
   * For `requireApproval(tool, queue.approve)`, or `approval(queue.approve)` of a call. Queues a request until its
   * verdict. A call that ends or is unsubscribed withdraws its requests immediately.
   */
  readonly approve: Approver;
  /** For `chatServer`. */
  readonly chat: ChatApprovals;
}

interface TokenRoute {
  readonly method: 'POST';
  readonly path: string;
  readonly answer$: (visit: { readonly request: Request }) => Observable<Response>;
}

/** Approvals in the streams of a chat server. */
export interface ChatApprovals {
  /** The route, below this path, for requests that decide by a token. */
  readonly routes: (path: string) => readonly TokenRoute[];
  /** Ends a stream when its call waits for approvals. */
  readonly asking: (answered?: readonly string[]) => Asking;
  /** Decides on tool calls of one call of a session, and emits the id of the call. */
  readonly decided$: (
    conversations: Pick<Conversations, 'past$' | 'sessionOf$' | 'runs$'>,
    sessionId: string,
    verdicts: readonly VerdictOfClient[],
  ) => Observable<string>;
  /** Approvals in responses of the OpenAI API. */
  readonly openAi: OpenAiApprovals;
}

/** Creates a queue for approvals by clients. Throws a `config` error if the key is missing or too short. */
export const approvalQueue = (options: ApprovalQueueOptions): ApprovalQueue => {
  checkOptions('approvalQueue()', options, rules);
  const signer = createTokenSigner(keysOf(options.key));
  const pending = createPendingRequests<QueuedRequest>(maxOutcomes);
  const { expiresInMs = 300_000, edits = false } = options;
  const desk: ApprovalDesk = {
    requests$: pending.shown$,
    decide: async (token, given) => {
      const verdict = readVerdict(given);
      const claims = await claimsOf(signer, token);
      const plain = await asShown(verdict, claims);
      const queued = await requestFor(pending, token, claims);
      if (queued !== undefined && verdict.approved && verdict.input !== undefined) {
        if (!mayEdit(edits, queued.request, verdict.input)) throw editRefused();
        const problems = await firstValueFrom(queued.request.problems$(verdict.input));
        if (problems.length > 0) throw invalidInput(problems);
      }
      if (queued !== undefined && pending.settle(claims.nonce, 'decided', plain))
        queued.verdict$.next({ ...verdict, by: 'user' });
      else checkSettled(pending, claims, plain);
    },
  };
  return {
    ...desk,
    // Allow parallel requests: a client shows all of them, and may decide in any order.
    approve: Object.assign(
      (request: ApprovalRequest) =>
        verdictOn$(signer, pending, request, { expiresInMs, mayEdit: edits !== false }),
      { parallel: true },
    ),
    chat: {
      routes: (path) => {
        const respond = approvalsHandler(desk);
        const answer$: TokenRoute['answer$'] = ({ request }) => from(respond(request));
        return [{ method: 'POST', path: `${path}/approvals`, answer$ }];
      },
      asking: (answered) => askByMessage(desk, answered),
      decided$: (conversations, sessionId, verdicts) =>
        decided$(desk, conversations, sessionId, verdicts),
      openAi: openAiApprovals(desk),
    },
  };
};

/** The number of remembered outcomes. Tokens of older requests are rejected as no longer pending. */
const maxOutcomes = 10_000;

const mayEdit = (
  edits: NonNullable<ApprovalQueueOptions['edits']>,
  request: ApprovalRequest,
  input: Readonly<Record<string, unknown>>,
): boolean =>
  canonicalJson(input) === canonicalJson(plainArguments(request.input)) ||
  (typeof edits === 'function' ? edits(request, input) : edits);

// `keysOf` checks the key: the error of a rule would print the value.
const anyKey: Rule = [() => true, 'a key'];

const rules: Readonly<Record<keyof ApprovalQueueOptions, Rule>> = {
  key: anyKey,
  expiresInMs: isDelay,
  edits: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'true, false or a function of a request and an input',
  ],
};

interface QueuedRequest extends PendingRequest {
  readonly claims: Claims;
  readonly shown: PendingApproval;
  readonly request: ApprovalRequest;
  readonly verdict$: Subject<Verdict>;
}

/** Signs and queues a request, and emits its verdict. Its time starts immediately. */
const verdictOn$ = (
  signer: TokenSigner,
  pending: PendingRequests<QueuedRequest>,
  request: ApprovalRequest,
  { expiresInMs, mayEdit: canEdit }: { readonly expiresInMs: number; readonly mayEdit: boolean },
): Observable<Verdict> =>
  defer(() => {
    if (!isShowable(request.input)) return of(notShowable);
    const { scheduler } = request.context;
    const nonce = createNonce();
    const expiresAt = scheduler.now() + expiresInMs;
    const verdict$ = new Subject<Verdict>();
    const queued$ = from(signed(signer, request, nonce, expiresAt)).pipe(
      concatMap(({ claims, shown: asked }) => {
        const shown = canEdit ? { ...asked, mayEdit: canEdit } : asked;
        pending.add(nonce, { claims, shown, request, verdict$, expiresAt, scheduler });
        return NEVER;
      }),
    );
    const expired$ = timer(expiresInMs, scheduler).pipe(
      tap(() => pending.settle(nonce, 'expired')),
      map(() => ({ approved: false, reason: 'No one decided on it in time.' })),
    );
    return merge(verdict$, expired$, queued$).pipe(
      take(1),
      finalize(() => pending.settle(nonce, 'withdrawn')),
    );
  });

/** A reviewer must see all arguments to approve them. */
const notShowable: Verdict = {
  approved: false,
  reason: 'Its arguments cannot be shown to the reviewer.',
};

const signed = async (
  signer: TokenSigner,
  { tool, toolCallId, toolCall, input: given, context }: ApprovalRequest,
  nonce: string,
  expiresAt: number,
): Promise<Pick<QueuedRequest, 'claims' | 'shown'>> => {
  const { callId, sessionId } = context;
  const input = plainArguments(given);
  const args = await hashOf(input);
  const claims = {
    v: 1,
    call: callId,
    tool,
    use: toolCallId,
    args,
    exp: expiresAt,
    nonce,
  } as const;
  const shown = Object.freeze({
    token: await signer.sign(claims),
    ...{ tool, toolCallId, callId, input, expiresAt, digest: await digestOf(toolCall) },
    ...(sessionId !== undefined && { sessionId }),
  });
  return { claims, shown };
};

const claimsOf = async (signer: TokenSigner, token: string): Promise<Claims> => {
  const claims = typeof token === 'string' ? await signer.verify(token) : undefined;
  if (claims === undefined) throw invalidToken();
  return claims;
};

/** Treats an approval of exactly the shown input as an approval without an input. */
const asShown = async ({ input, ...plain }: ReadVerdict, { args }: Claims): Promise<ReadVerdict> =>
  input === undefined || (await hashOf(input)) === args ? plain : { ...plain, input };

/** Finds the request of a token, if it is pending. Rejects if it is not the one that was shown. */
const requestFor = async (
  pending: PendingRequests<QueuedRequest>,
  token: string,
  claims: Claims,
): Promise<QueuedRequest | undefined> => {
  const queued = pending.find(claims.nonce);
  if (queued === undefined) return undefined;
  if (queued.shown.token !== token) throw invalidToken();
  if (hasExpired(queued)) throw expired();
  if ((await hashOf(plainArguments(queued.request.input))) !== claims.args)
    throw argumentsChanged();
  return queued;
};

/** Throws if a request that is no longer pending has a different decision, or none. */
const checkSettled = (
  pending: PendingRequests<QueuedRequest>,
  { nonce, exp }: Claims,
  verdict: ReadVerdict,
): void => {
  const isOver = exp <= asyncScheduler.now();
  const outcome = pending.outcomeOf(nonce) ?? (isOver ? 'expired' : 'withdrawn');
  if (outcome !== 'decided') throw outcome === 'expired' ? expired() : notPending();
  checkSame(pending.verdictOf(nonce), verdict);
};

const refusal = (message: string, status: number): MillraceError =>
  new MillraceError('invalidResume', message, { userMessage: message, status });

/** No key has signed the token. Does not reveal whether it is unknown, truncated or altered. */
const invalidToken = (): MillraceError => refusal('This approval is not valid.', 401);

const argumentsChanged = (): MillraceError =>
  refusal('The request has changed since it was shown for approval.', 409);

const expired = (): MillraceError => refusal('This request has expired.', 410);

/** The call has ended or was unsubscribed, or it waits in another process. */
const notPending = (): MillraceError => refusal('This request is no longer pending.', 410);

const editRefused = (): MillraceError => {
  const message = 'The input cannot be edited. Approve it as it was shown, or deny it.';
  return new MillraceError('invalidRequest', message, { userMessage: message, status: 403 });
};

/** The tool rejects the input that replaces the model's. */
const invalidInput = (problems: readonly string[]): MillraceError => {
  const message = `The input is not valid: ${problems.join('; ')}`;
  return new MillraceError('invalidRequest', message, { userMessage: message, status: 422 });
};
