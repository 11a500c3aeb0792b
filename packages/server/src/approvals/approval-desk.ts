import type { ApprovalRequest, Approver, MillraceError, Verdict } from '@millrace/core';
import { checkOptions, isDelay, type Rule } from '@millrace/core/adapter';
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
import { type ApprovalKey, keysOf } from './approval-keys.js';
import { type Claims, createNonce, hashOf, isShowable, plainArguments } from './claims.js';
import { readVerdict } from './read-verdict.js';
import { changed, gone, late, notValid, repeated, unfit } from './refusals.js';
import { createSeal, type Seal } from './seal.js';
import { createWaitingRoom, isLate, type Waiting, type WaitingRoom } from './waiting-room.js';

/** How a desk signs, and how long it waits. */
export interface ApprovalDeskOptions {
  /**
   * What tokens are signed with: at least 32 bytes. Of a list, the first signs and all verify: put a new key before the old one, and
   * take the old one away when its tokens have expired.
   */
  readonly key: ApprovalKey | readonly ApprovalKey[];
  /** How long a request waits for its decision, in milliseconds. Default: 300,000, five minutes. */
  readonly expiresInMs?: number;
}

/** A use of a tool that waits for a decision. */
export interface WaitingApproval {
  /** Whoever has it may decide, once. */
  readonly token: string;
  readonly tool: string;
  readonly toolUseId: string;
  readonly callId: string;
  readonly sessionId?: string;
  /** What the tool would be given, with all that the program has set, as plain JSON: before its schema makes of it what it may. */
  readonly input: unknown;
  /** Milliseconds since the epoch, by the scheduler of the call. */
  readonly expiresAt: number;
}

/** Where uses of tools wait until somebody decides on them. */
export interface ApprovalDesk {
  /** For `requireApproval(tool, desk.approve)`, or `approval(desk.approve)` of a call: asks at this desk, and waits. A call that ends or is left takes its requests back at once. */
  readonly approve: Approver;
  /** Hot: the list of those that wait, the oldest first, at once and whenever it changes. Never errors, never completes. */
  readonly requests$: Observable<readonly WaitingApproval[]>;
  /**
   * Decides, once for each token; the call has gone on when it resolves. The verdict may come from a client, and is checked: an `invalidRequest` error
   * of status 400, or of 422 where the tool would not take its input, leaves the token as it was. Rejects with `invalidResume` where a token is not this desk's or has been changed (status
   * 401), has been used or is about other arguments (409), is late, or nobody waits for it any more (410).
   */
  decide(token: string, verdict: Verdict): Promise<void>;
}

/** Makes a desk for approvals that a client gives. Throws a `config` error where the key is missing or too short. */
export const approvalDesk = (options: ApprovalDeskOptions): ApprovalDesk => {
  checkOptions('approvalDesk()', options, rules);
  const seal = createSeal(keysOf(options.key));
  const room = createWaitingRoom<Asked>(remembered);
  const { expiresInMs = 300_000 } = options;
  return {
    approve: (request) => asked$(seal, room, request, expiresInMs),
    requests$: room.shown$,
    decide: async (token, given) => {
      const verdict = readVerdict(given);
      const asked = await opened(seal, room, token);
      if (verdict.approved && verdict.input !== undefined) {
        const problems = await firstValueFrom(asked.request.problems$(verdict.input));
        if (problems.length > 0) throw unfit(problems);
      }
      if (!room.leave(asked.claims.nonce, 'decided')) throw refusalOf(room, asked.claims);
      asked.verdict$.next(verdict);
    },
  };
};

/** Endings that a desk tells apart; of older ones it says that nobody waits. */
const remembered = 10_000;

// What `key` must be says `keysOf`: an error that shows what was given must not show a key.
const anyKey: Rule = [() => true, 'a key'];

const rules: Readonly<Record<keyof ApprovalDeskOptions, Rule>> = {
  key: anyKey,
  expiresInMs: isDelay,
};

interface Asked extends Waiting {
  readonly claims: Claims;
  readonly shown: WaitingApproval;
  readonly request: ApprovalRequest;
  readonly verdict$: Subject<Verdict>;
}

/** Files a request as soon as it is signed, and emits what becomes of it. Its time begins at once. */
const asked$ = (
  seal: Seal,
  room: WaitingRoom<Asked>,
  request: ApprovalRequest,
  expiresInMs: number,
): Observable<Verdict> =>
  defer(() => {
    if (!isShowable(request.input)) return of(hiddenFromView);
    const { scheduler } = request.context;
    const nonce = createNonce();
    const expiresAt = scheduler.now() + expiresInMs;
    const verdict$ = new Subject<Verdict>();
    const filed$ = from(signed(seal, request, nonce, expiresAt)).pipe(
      concatMap((filed) => {
        room.enter(nonce, { ...filed, request, verdict$, expiresAt, scheduler });
        return NEVER;
      }),
    );
    const late$ = timer(expiresInMs, scheduler).pipe(
      tap(() => room.leave(nonce, 'expired')),
      map(() => ({ approved: false, reason: 'Nobody has decided on it in time.' })),
    );
    return merge(verdict$, late$, filed$).pipe(
      take(1),
      finalize(() => room.leave(nonce, 'withdrawn')),
    );
  });

/** Nobody can agree to what is not shown. */
const hiddenFromView: Verdict = {
  approved: false,
  reason: 'Its arguments cannot be shown to those who would decide.',
};

const signed = async (
  seal: Seal,
  { tool, toolUseId, input: given, context }: ApprovalRequest,
  nonce: string,
  expiresAt: number,
): Promise<Pick<Asked, 'claims' | 'shown'>> => {
  const { callId, sessionId } = context;
  const input = plainArguments(given);
  const args = await hashOf(input);
  const claims = { v: 1, call: callId, tool, use: toolUseId, args, exp: expiresAt, nonce } as const;
  const shown = Object.freeze({
    token: await seal.sealed(claims),
    ...{ tool, toolUseId, callId, input, expiresAt },
    ...(sessionId !== undefined && { sessionId }),
  });
  return { claims, shown };
};

/** What a token is about, where it can still be decided on; else an error. */
const opened = async (seal: Seal, room: WaitingRoom<Asked>, token: string): Promise<Asked> => {
  const claims = typeof token === 'string' ? await seal.opened(token) : undefined;
  if (claims === undefined) throw notValid();
  const asked = room.find(claims.nonce);
  if (asked === undefined) throw refusalOf(room, claims);
  if (asked.shown.token !== token) throw notValid();
  if (isLate(asked)) throw late();
  if ((await hashOf(plainArguments(asked.request.input))) !== claims.args) throw changed();
  return asked;
};

const refusalOf = (room: WaitingRoom<Asked>, { nonce, exp }: Claims): MillraceError => {
  switch (room.endingOf(nonce)) {
    case 'decided':
      return repeated();
    case 'expired':
      return late();
    case 'withdrawn':
      return gone();
    case undefined:
      return exp <= asyncScheduler.now() ? late() : gone();
  }
};
