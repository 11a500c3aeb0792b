import {
  addUsage,
  type AgentEvent,
  cell,
  isEvent,
  type Layer,
  noUsage,
  type Step,
  type ToolCallBlock,
  type Usage,
} from 'millrace';
import { isSameInput } from 'millrace/values';
import {
  BehaviorSubject,
  defer,
  distinctUntilChanged,
  finalize,
  ignoreElements,
  map,
  merge,
  of,
  Subject,
  switchMap,
  takeUntil,
  tap,
} from 'rxjs';
import type { ApprovalDesk, PendingApproval } from '../approvals/pending-requests.js';
import { fieldOf } from '../inbound.js';
import { plainJson } from '../plain-json.js';

declare module 'millrace' {
  interface Events {
    /** The call waits for nothing but decisions of clients on these tool calls. */
    readonly openAiAsks: { readonly toolCallIds: readonly string[] };
  }
}

/** An approval request on a tool call. The record of a call contains all of them. */
export interface Question {
  /** Its number among those of the call, from 1. */
  readonly number: number;
  /** Its id in the queue. */
  readonly id: string;
  /** The id of the approval request item. */
  readonly itemId: string;
  readonly toolCall: ToolCallBlock;
  /** `undefined` while it is open. */
  readonly approved?: boolean;
}

/** The questions of a call after one more of its events. */
export const questionsAfter = (
  questions: readonly Question[],
  event: AgentEvent,
): readonly Question[] => {
  const isOwn = event.parentId === undefined;
  if (!isOwn || !isEvent(event, 'approvalRequested', 'approvalDecided')) return questions;
  const { toolCall, callId, iteration } = event;
  const earlier = questions.filter((it) => it.toolCall.id === toolCall.id);
  const open = earlier.findLast(({ approved }) => approved === undefined);
  if (event.type === 'approvalDecided') {
    return questions.map((it) =>
      it === open ? { ...it, toolCall, approved: event.approved } : it,
    );
  }
  // A call that is resumed asks the open question again.
  if (open !== undefined && isSameInput(open.toolCall, toolCall)) return questions;
  const id = `${callId}/${iteration}/${toolCall.id}?${earlier.length + 1}`;
  const number = questions.length + 1;
  return [...questions, { number, id, itemId: `mcpr_${callId}_${number}`, toolCall }];
};

/** Finds the start of a response in its call, and the approval requests that end it. */
export interface Asking {
  note(event: AgentEvent): void;
  readonly hasStarted: boolean;
  /** The approval requests that the response ends with, as items; `undefined` before its end. */
  readonly requests: readonly object[] | undefined;
  /** The usage before the response. */
  readonly spent: Usage;
  /** The question on the tool call with this client id, if the response starts with its decision. */
  decidedOn(id: string): Question | undefined;
}

/** Tracks the response that starts with the decisions on these questions; without any, with the call. */
export const createAsking = (label: string, decided: readonly number[] = []): Asking => {
  let hasStarted = decided.length === 0;
  let questions: readonly Question[] = [];
  let requests: readonly object[] | undefined;
  let spent = noUsage;
  const isOpen = (it: Question): boolean => it.approved === undefined;
  return {
    get hasStarted() {
      return hasStarted;
    },
    get requests() {
      return requests;
    },
    get spent() {
      return spent;
    },
    decidedOn: (id) =>
      questions.findLast((it) => decided.includes(it.number) && it.id.startsWith(`${plain(id)}?`)),
    note: (event) => {
      questions = questionsAfter(questions, event);
      const own = questions.filter(({ number }) => decided.includes(number));
      hasStarted ||= !own.every(isOpen);
      if (!hasStarted && isEvent(event, 'postReasoning', 'postSummary', 'postPlanning')) {
        spent = addUsage(spent, event.usage);
      }
      const isLast = hasStarted && !own.some(isOpen) && event.parentId === undefined;
      if (isLast && isEvent(event, 'openAiAsks')) {
        requests = questions
          .filter((it) => isOpen(it) && event.toolCallIds.includes(it.toolCall.id))
          .map((it) => requestItem(it, label));
      }
    },
  };
};

const requestItem = ({ itemId: id, toolCall: { name, input } }: Question, label: string) => ({
  type: 'mcp_approval_request',
  ...{ id, name, server_label: label, arguments: JSON.stringify(plainJson(input)) },
});

/** Removes the number of an edited message from the id of a tool call. */
const plain = (id: string): string => id.replace(/^([^/]+\/\d+)~\d+/u, '$1');

/** The open tool steps: decisions, and runs of tools. */
const steps = /* @__PURE__ */ cell('call', () => new BehaviorSubject<readonly ToolStep[]>([]));

type ToolStep = Pick<Step<unknown>, 'kind' | 'id' | 'input'>;

/** Reports when a call waits for nothing but decisions in the queue, so its record says where its responses end. */
export const reportAsking = ({ requests$ }: Pick<ApprovalDesk, 'requests$'>): Layer => ({
  name: 'openAiAsks',
  // Runs outside the journal, which delays the step after the one that ends.
  priority: 20,
  step: ({ local }) => {
    const open$ = local(steps);
    return (next) => (step) => {
      if (step.kind !== 'tool' && step.kind !== 'intent') return next(step);
      const own: ToolStep = step;
      return defer(() => {
        open$.next([...open$.value, own]);
        return next(step).pipe(
          finalize(() => {
            open$.next(open$.value.filter((it) => it !== own));
          }),
        );
      });
    };
  },
  record:
    ({ info: { callId }, hooks, local }) =>
    (call$) => {
      const over$ = new Subject<void>();
      const asking$ = local(steps).pipe(
        switchMap((open) =>
          open.length === 0
            ? of(working)
            : requests$.pipe(map((pending) => askedIn(open, pending, callId))),
        ),
        distinctUntilChanged(
          (before, now) => String(before.toolCallIds) === String(now.toolCallIds),
        ),
        tap(({ iteration, toolCallIds }) => {
          if (toolCallIds.length > 0) hooks.report(iteration, { type: 'openAiAsks', toolCallIds });
        }),
        ignoreElements(),
        takeUntil(over$),
      );
      return merge(
        asking$,
        call$.pipe(
          finalize(() => {
            over$.next();
          }),
        ),
      );
    },
});

const working = { iteration: 0, toolCallIds: [] };

/** The ids of the waiting tool calls, if every open step waits. */
const askedIn = (
  open: readonly ToolStep[],
  pending: readonly PendingApproval[],
  callId: string,
): { readonly iteration: number; readonly toolCallIds: readonly string[] } => {
  const waiting = pending.filter((it) => it.callId === callId).map((it) => it.toolCallId);
  const toolCallIds = open.map(({ input }) => String(fieldOf(input, 'id')));
  return toolCallIds.every((id) => waiting.includes(id))
    ? { iteration: Number.parseInt(open[0]?.id ?? '', 10), toolCallIds }
    : working;
};
