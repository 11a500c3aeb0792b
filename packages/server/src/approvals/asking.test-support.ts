import type { ApprovalRequest, ToolContext, Verdict } from '@millrace/core';
import { lentToolContext } from '@millrace/core/testing';
import { filter, firstValueFrom, from, map, type Observable, of } from 'rxjs';
import {
  type ApprovalDesk,
  approvalDesk,
  type ApprovalDeskOptions,
  type WaitingApproval,
} from '../index.js';

export const key = 'a key of thirty-two bytes or more';

export const deskOf = (options: Partial<ApprovalDeskOptions> = {}): ApprovalDesk =>
  approvalDesk({ key, ...options });

/** Asks as a call does that is to run a tool. */
export const asking$ = (
  { approve }: ApprovalDesk,
  request: Partial<ApprovalRequest> = {},
  lent: Partial<ToolContext> = {},
): Observable<Verdict> => {
  const given = approve({
    ...{ tool: 'pay', toolUseId: 'u1', input: { amount: 5 }, value: { amount: 5 } },
    problems$: () => of([]),
    context: lentToolContext({ callId: 'c1', toolUseId: 'u1', ...lent }),
    ...request,
  });
  return typeof given === 'object' && !('approved' in given) ? from(given) : of(given);
};

/** The newest that waits, as soon as so many do. */
export const waiting = ({ requests$ }: ApprovalDesk, count = 1): Promise<WaitingApproval> =>
  firstValueFrom(
    requests$.pipe(
      filter(({ length }) => length === count),
      map((all) => all.at(-1)),
      filter((it) => it !== undefined),
    ),
  );

/** All that wait now. */
export const waitingNow = ({ requests$ }: ApprovalDesk): Promise<readonly WaitingApproval[]> =>
  firstValueFrom(requests$);

/** What a promise rejects with. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
