import type { ApprovalRequest, ToolContext, Verdict } from 'millrace';
import { lentToolContext } from 'millrace/testing';
import { filter, firstValueFrom, from, map, type Observable, of } from 'rxjs';
import {
  type ApprovalQueue,
  approvalQueue,
  type ApprovalQueueOptions,
  type PendingApproval,
} from './index.js';

export const key = 'a key of thirty-two bytes or more';

export const queueOf = (options: Partial<ApprovalQueueOptions> = {}): ApprovalQueue =>
  approvalQueue({ key, edits: true, ...options });

/** Requests an approval as a call does before it runs a tool. */
export const asking$ = (
  { approve }: ApprovalQueue,
  request: Partial<ApprovalRequest> = {},
  lent: Partial<ToolContext> = {},
): Observable<Verdict> => {
  const given = approve({
    ...{ tool: 'pay', toolCallId: 'u1', input: { amount: 5 }, value: { amount: 5 } },
    ...{ toolCall: { type: 'tool_call', id: 'u1', name: 'pay', input: { amount: 5 } }, round: 1 },
    problems$: () => of([]),
    context: lentToolContext({ callId: 'c1', toolCallId: 'u1', ...lent }),
    ...request,
  });
  return typeof given === 'object' && !('approved' in given) ? from(given) : of(given);
};

/** The newest pending request, once there are `count`. */
export const waiting = ({ requests$ }: ApprovalQueue, count = 1): Promise<PendingApproval> =>
  firstValueFrom(
    requests$.pipe(
      filter(({ length }) => length === count),
      map((all) => all.at(-1)),
      filter((it) => it !== undefined),
    ),
  );

export const waitingNow = ({ requests$ }: ApprovalQueue): Promise<readonly PendingApproval[]> =>
  firstValueFrom(requests$);

export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
