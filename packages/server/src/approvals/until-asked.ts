import { type AgentEvent, isEvent } from 'millrace';
import {
  concatMap,
  connect,
  defer,
  EMPTY,
  endWith,
  filter,
  first,
  ignoreElements,
  map,
  merge,
  type MonoTypeOperatorFunction,
  type Observable,
  type OperatorFunction,
  switchMap,
  takeUntil,
  takeWhile,
  tap,
} from 'rxjs';
import { askedAfter, type Past } from '../chat/past.js';
import type { ApprovalDesk } from './pending-requests.js';
import { questionId, questionOf } from './read-verdict.js';
import type { AskedApproval, Asking, Part, PartOf } from '../parts/part.js';

/** The tool calls of a root call that wait for approval, if nothing else runs. */
interface Rest {
  readonly type: 'rest';
  readonly waiting: readonly string[];
}

/**
 * Ends a stream once its call waits for nothing but approvals that are in the queue: the client answers with its next
 * request, as the SDKs of both protocols do. The stream of that request begins after the one that asked.
 */
export const askByMessage = (
  approvals: Pick<ApprovalDesk, 'requests$'>,
  questions: readonly string[] = [],
): Asking => {
  const answered = questions.map((id) => questionOf(id).toolCallId);
  return { answered, through: through(approvals, answered) };
};

const through =
  (approvals: Pick<ApprovalDesk, 'requests$'>, answered: readonly string[]): Asking['through'] =>
  (toParts) =>
  (event$) =>
    defer(() => {
      const seen: Seen = {
        callId: '',
        step: undefined,
        asked: new Map(),
        decided: new Set(),
        questions: new Map(),
      };
      return event$.pipe(
        tap((event) => {
          if (
            event.parentId === undefined &&
            isEvent(event, 'approvalRequested', 'approvalDecided')
          )
            seen.questions = askedAfter(seen.questions, event);
        }),
        connect((shared$) => merge(shared$.pipe(toParts), shared$.pipe(rests))),
        tap((item) => {
          if (isPart(item)) see(seen, item);
        }),
        after(answered, seen),
        untilAtRest(approvals, answered, seen),
      );
    });

/** The state of the root call so far. */
interface Seen {
  callId: string;
  /** The open step. */
  step: PartOf<'stepStart' | 'stepEnd'> | undefined;
  /** The requested approvals by the ids of their tool calls in the call. */
  readonly asked: Map<string, AskedApproval>;
  /** The ids in the client of the tool calls that were decided on. */
  readonly decided: Set<string>;
  questions: Past['questions'];
}

const see = (seen: Seen, part: Part): void => {
  if (part.by.parentId !== undefined) return;
  seen.callId = part.by.callId;
  if (part.type === 'stepStart') seen.step = part;
  if (part.type === 'stepEnd') seen.step = undefined;
  if (part.type !== 'notice') return;
  const { notice, by } = part;
  if (notice.name === 'approvalDecided') seen.decided.add(notice.toolCallId);
  if (notice.name !== 'approvalRequested') return;
  const { toolCallId, toolName, localId } = notice;
  const id = questionId(toolCallId, seen.questions.get(localId)?.question ?? 1);
  seen.asked.set(localId, { toolCallId, toolName, localId, questionId: id, expiresAt: 0, by });
};

const rests: OperatorFunction<AgentEvent, Rest> = (event$) =>
  defer(() => {
    const running = new Set<string>();
    const waiting = new Set<string>();
    return event$.pipe(
      filter(({ parentId }) => parentId === undefined),
      map((event): Rest => {
        if (isEvent(event, 'preActing')) running.add(event.toolCall.id);
        if (isEvent(event, 'approvalRequested')) waiting.add(event.toolCall.id);
        if (isEvent(event, 'approvalDecided', 'postActing')) waiting.delete(event.toolCall.id);
        if (isEvent(event, 'postActing')) running.delete(event.toolCall.id);
        const isAtRest = [...running].every((id) => waiting.has(id));
        return { type: 'rest', waiting: isAtRest ? [...waiting] : [] };
      }),
    );
  });

const isPart = (item: Part | Rest): item is Part => item.type !== 'rest';
const isRest = (item: Part | Rest): item is Rest => item.type === 'rest';

/** Whether one of these tool calls was answered. Clients know it by a longer id. */
const isAnswered = (answered: readonly string[], waiting: readonly string[]): boolean =>
  waiting.some((id) => answered.some((it) => it.endsWith(`/${id}`)));

/** Omits everything that the client received from the earlier stream, except for the starts of the call and of the open step. */
const after =
  (answered: readonly string[], seen: Seen): MonoTypeOperatorFunction<Part | Rest> =>
  (item$) => {
    let isOmitting = answered.length > 0;
    return item$.pipe(
      concatMap((item): readonly (Part | Rest)[] => {
        if (!isOmitting) return [item];
        if (isPart(item)) {
          const isFrame = item.type === 'callStart' || item.type === 'callEnd';
          return isFrame && item.by.parentId === undefined ? [item] : [];
        }
        if (!isAnswered(answered, item.waiting)) return [];
        isOmitting = false;
        return seen.step === undefined ? [item] : [{ ...seen.step, isContinued: true }, item];
      }),
    );
  };

const untilAtRest =
  (
    { requests$ }: Pick<ApprovalDesk, 'requests$'>,
    answered: readonly string[],
    seen: Seen,
  ): OperatorFunction<Part | Rest, Part> =>
  (item$) => {
    const end$ = ({ waiting }: Rest): Observable<Part> => {
      // Wait until the call has received the decisions of the request.
      const open = answered.filter((id) => !seen.decided.has(id));
      if (waiting.length === 0 || isAnswered(open, waiting)) return EMPTY;
      return requests$.pipe(
        map((pending) =>
          // Also count pending approvals whose events have not arrived yet.
          pending.flatMap(
            ({ callId, toolCallId, expiresAt }): readonly (AskedApproval | undefined)[] => {
              if (callId !== seen.callId) return [];
              const use = waiting.includes(toolCallId) ? seen.asked.get(toolCallId) : undefined;
              return [use && { ...use, expiresAt }];
            },
          ),
        ),
        filter((pending) => pending.length === waiting.length),
        map((pending) => pending.filter((it) => it !== undefined)),
        first((pending) => pending.length === waiting.length),
        concatMap((pending) => endOf(pending, seen)),
      );
    };
    return item$.pipe(
      connect((shared$) =>
        merge(
          shared$.pipe(filter(isPart)),
          shared$.pipe(
            filter(isRest),
            switchMap(end$),
            takeUntil(shared$.pipe(ignoreElements(), endWith(undefined))),
          ),
        ),
      ),
      takeWhile(({ type }) => type !== 'asks', true),
    );
  };

const endOf = (asked: readonly AskedApproval[], { step }: Seen): readonly Part[] =>
  asked
    .slice(0, 1)
    .flatMap(({ by }): readonly Part[] => [
      ...(step === undefined ? [] : [{ ...step, type: 'stepEnd', isContinued: true } as const]),
      { type: 'asks', by, asked },
    ]);
