import {
  AsyncSubject,
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  finalize,
  identity,
  map,
  type Observable,
  type ObservableInput,
  of,
  Subscription,
  take,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import { contained, finalizeNow } from '../flow/contained.js';
import { decidersOfCall } from '../phases/authorize-tool-call.js';
import { isConfigError, MillraceError, misuse, toMillraceError } from '../values/errors.js';
import { copied, frozen, type ToolCallBlock } from '../values/message.js';
import { canonicalJson, defined, isRecord, isTooDeep } from '../values/json.js';
import type { AnyRun } from '../values/reply.js';
import type { Layer } from '../seams/layer.js';
import { trusted } from '../seams/through.js';
import { checkOptions, isDelay, isFlag, type Rule } from '../values/options.js';
import { withoutKeys } from '../values/schema.js';
import { cell, offTheClock } from '../step.js';
import { given$ } from '../tools/tool.js';
import { isTool } from '../tools/toolkit.js';
import { createTrampoline, type Trampoline } from '../flow/trampoline.js';
import type {
  CheckedUse,
  Decider,
  PendingUse,
  ReadyUse,
  Tool,
  ToolContext,
} from '../tools/types.js';
import { layerPlaces } from '../seams/layer-places.js';

export interface ApprovalRequest<Value = unknown> {
  readonly tool: string;
  readonly toolCallId: string;
  /** The tool call without the values that the program sets: what is asked about. */
  readonly toolCall: ToolCallBlock;
  /** From 1. Each edit of the tool call starts a round, in which those that saw another input are asked again. */
  readonly round: number;
  /** The validated input as the model wrote it, with the values that the program sets. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The validated input as the schema returns it: the tool receives this. */
  readonly value: Value;
  readonly context: ToolContext;
  /** Validates another input: emits one line per invalid parameter, or an empty list, and completes. */
  problems$(input: unknown): Observable<readonly string[]>;
}

export type Verdict =
  | boolean
  | {
      readonly approved: boolean;
      readonly input?: unknown;
      /** The model reads why it was denied. */
      readonly reason?: string;
      /** Who has decided, if a person has: servers show the reasons of a `user` to users, and keep those of programs to themselves. */
      readonly by?: 'user';
    };

/**
 * Decides whether a tool call runs. Emitting nothing denies it; so does an error, which emits `handlerError`. Anything else than a verdict
 * fails the call with `config`.
 */
export interface Approver<Value = unknown> {
  (request: ApprovalRequest<Value>): Verdict | ObservableInput<Verdict>;
  /** The default of the option `parallel`: this approver can be asked several questions. Default: false. */
  readonly parallel?: boolean;
}

export interface ApprovalOptions {
  /** Denies a tool call without a decision after this many milliseconds. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Asks about all tool calls of a turn at the same time. Default: one after the other, while other tools run. */
  readonly parallel?: boolean | undefined;
}

const rules: Readonly<Record<keyof ApprovalOptions, Rule>> = {
  timeoutMs: isDelay,
  parallel: isFlag,
};

/** The requests of a call: the first one is asked, the others wait. */
const line = cell('call', (): Line => ({
  turns: [],
  deliver: createTrampoline(),
  later: Subscription.EMPTY,
}));

interface Line {
  readonly turns: AsyncSubject<never>[];
  readonly deliver: Trampoline;
  /** The next request, if the one before was cut. */
  later: Subscription;
}

const inTurn$ = <T>({ local, lent }: PendingUse, asked$: Observable<T>): Observable<T> =>
  defer(() => {
    const all = local(line);
    const { turns, deliver } = all;
    const turn = new AsyncSubject<never>();
    if (turns.push(turn) === 1) turn.complete();
    let isDecided = false;
    const askNext = (): void => turns[0]?.complete();
    return concat(turn.pipe(restoreAsyncContext()), asked$).pipe(
      tap({ complete: () => (isDecided = true) }),
      finalize(() => {
        turns.splice(turns.indexOf(turn), 1);
        // If it was cut, those that wait are usually cut as well: they must not be asked before.
        if (isDecided) deliver(askNext);
        else if (turns.length > 0) all.later = lent.scheduler.schedule(askNext);
        else all.later.unsubscribe();
      }),
    );
  });

declare module '../events.js' {
  interface Events {
    readonly approvalRequested: {
      readonly toolCall: ToolCallBlock;
      /** From 1. Each edit of the tool call starts a round. */
      readonly round: number;
    };
    readonly approvalDecided: {
      readonly toolCall: ToolCallBlock;
      readonly round: number;
      readonly approved: boolean;
      readonly reason?: string;
      /** A person has decided, by the word of the approver. */
      readonly by?: 'user';
    };
  }
}

/**
 * Asks for approval before every tool call, including those of sub-agents, after the tool's own approvers. All must
 * agree to one input: after an edit, those that saw another one are asked again. The order: first the approver of the call, then that of its agent, then those of the calls above.
 */
export const approval = (approver: Approver, options: ApprovalOptions = {}): Layer => {
  if (typeof approver !== 'function') throw misuse('approval() takes an approver function.');
  checkOptions('approval()', options, rules);
  return trusted({
    name: 'approval',
    priority: layerPlaces.approval,
    inherit: true,
    call:
      ({ local }) =>
      (next) =>
      (call) => {
        local(decidersOfCall).unshift(approvedBy(approver, options));
        return next(call);
      },
  });
};

/**
 * Asks an approver before each call of a tool; `false` denies all calls, `true` allows all. It may edit the input,
 * which is validated again. Several approvers must all agree to one input, in the order in which you add them: after an edit, those
 * that saw another input are asked again. The wait does not count
 * towards `callMs` or `toolMs`.
 *
 * @example
 * ```ts
 * const guarded = requireApproval(deleteFile, ({ input }) => ask(`Delete ${JSON.stringify(input)}?`));
 * const agent = createAgent({ model, tools: [guarded] });
 * ```
 */
export const requireApproval = <Value, Run extends AnyRun>(
  tool: Tool<Value, Run>,
  approver: boolean | Approver<Value>,
  options: ApprovalOptions = {},
): Tool<Value, Run> => {
  if (!isTool(tool)) throw misuse('requireApproval() takes a tool and its approver.');
  checkOptions('requireApproval()', options, rules);
  if (approver === true) return tool;
  if (approver !== false && typeof approver !== 'function') {
    throw misuse(
      `requireApproval() of the tool '${tool.name}' takes true, false or an approver function.`,
    );
  }
  const own = approver !== false && approver.parallel === true;
  const asked: false | Approver =
    approver !== false &&
    // The validator guarantees the schema's type, but no type guard can express that.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    ((request) => approver({ ...request, value: request.value as Value }));
  const name = approver === false ? '' : approver.name;
  const decider = approvedBy(asked, { parallel: own, ...options }, name);
  return { ...tool, deciders: [...(tool.deciders ?? []), decider] };
};

const approvedBy = (
  approver: false | Approver,
  { timeoutMs, parallel = approver !== false && approver.parallel }: ApprovalOptions,
  name = approver === false ? '' : approver.name,
): Decider => ({
  name: name || 'approval',
  decide$: (use, checked) => {
    const approved$ = afterApproval$(use, approver, timeoutMs, checked);
    const { local, lent } = use;
    const clock = { local, scheduler: lent.scheduler };
    return offTheClock(clock, parallel === true ? approved$ : inTurn$(use, approved$));
  },
});

const afterApproval$ = (
  use: PendingUse,
  approver: false | Approver,
  timeoutMs: number | undefined,
  before: ReadyUse,
): Observable<CheckedUse> =>
  defer(() => {
    const { tool, lent, check$, report, local, round } = use;
    const { name, hidden = [] } = tool;
    const { toolCall, input, value } = before;
    const deny = (why: string): CheckedUse => ({ status: 'refused', toolCall, problems: [], why });
    report({ type: 'approvalRequested', toolCall, round });
    const settled = local(pendingApprovals).add?.(toolCall, lent.iteration);
    const request: ApprovalRequest = {
      tool: name,
      toolCallId: toolCall.id,
      toolCall,
      round,
      // Copies, so that the approver cannot change what runs.
      input: copiedRecord(input),
      value: copied(value),
      context: lent,
      problems$: (other) =>
        isRecord(other)
          ? check$(withInput(toolCall, other, hidden)).pipe(map(problemsOf))
          : of(['The input must be an object.']),
    };
    return decision$(use, approver, timeoutMs, request).pipe(
      // Settles before the tool runs, and also if the call stops waiting for the decision.
      tap(() => settled?.()),
      finalizeNow(() => settled?.()),
      concatMap(({ approved: isApproved, input: edit, reason, by }) => {
        const isAsShown =
          edit === undefined || isSame(withoutKeys(edit, hidden), withoutKeys(input, hidden));
        const edited = isAsShown ? toolCall : withInput(toolCall, edit, hidden);
        const decided = { toolCall: edited, approved: isApproved, round };
        report({ type: 'approvalDecided', ...decided, ...defined({ reason, by }) });
        if (!isApproved) return of(deny(denied(name, reason)));
        if (isAsShown) return of(before);
        return check$(edited).pipe(
          map((checked) =>
            checked.status === 'ready' ? checked : deny(misedited(name, checked.problems)),
          ),
        );
      }),
    );
  });

const isSame = (one: unknown, other: unknown): boolean =>
  canonicalJson(one) === canonicalJson(other);

const problemsOf = (checked: CheckedUse): readonly string[] =>
  checked.status === 'ready' ? [] : checked.problems;

const copiedRecord = (input: ToolCallBlock['input']): ToolCallBlock['input'] => {
  const copy = copied(input);
  return isRecord(copy) ? copy : {};
};

const withInput = (
  toolCall: ToolCallBlock,
  input: ToolCallBlock['input'],
  hidden: readonly string[],
): ToolCallBlock => frozen({ ...toolCall, input: copiedRecord(withoutKeys(input, hidden)) });

const denied = (name: string, reason: string | undefined): string =>
  `Not run: this call to ${name} was not approved.${reason === undefined ? '' : ` ${reason}`}`;

const misedited = (name: string, problems: readonly string[]): string =>
  `Not run: this call to ${name} was approved with a different input, which is not valid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;

/** Registers a pending approval in the list of the call, if there is one; returns a function that removes it. */
export const pendingApprovals = cell(
  'call',
  (): { add?: (toolCall: ToolCallBlock, iteration: number) => () => void } => ({}),
);

interface Decision {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
  readonly by?: 'user' | undefined;
}

/** Asks an approver. Emits one decision: a failed or late approver denies the tool call. Errors with `config` if it answers with anything else. */
const decision$ = (
  { report, lent: { scheduler } }: PendingUse,
  approver: false | Approver,
  timeoutMs: number | undefined,
  request: ApprovalRequest,
): Observable<Decision> => {
  if (approver === false) return of({ approved: false });
  const late = new MillraceError('timeout', 'No decision was made in time.');
  const deniedBy = (cause: unknown): Decision => {
    if (cause === late) return { approved: false, reason: late.message };
    if (isConfigError(cause)) throw cause;
    const error = toMillraceError(cause, 'config', `The approver of '${request.tool}' failed`);
    report({ type: 'handlerError', of: 'approve', name: request.tool, error });
    return { approved: false, reason: 'The approver failed.' };
  };
  return defer(() => given$(approver(request), isVerdict)).pipe(
    contained(),
    take(1),
    timeoutMs === undefined
      ? identity
      : timeout({ each: timeoutMs, scheduler, with: () => throwError(() => late) }),
    map(toDecision),
    catchError((cause: unknown) => of(deniedBy(cause))),
    defaultIfEmpty({ approved: false, reason: 'No decision was made.' }),
  );
};

const isVerdict = (given: unknown): given is Verdict =>
  typeof given === 'boolean' || (isRecord(given) && 'approved' in given);

/** The value comes from outside: anything but an explicit approval is a denial. */
const toDecision = (given: unknown): Decision => {
  if (typeof given === 'boolean') return { approved: given };
  if (!isRecord(given) || typeof given['approved'] !== 'boolean') {
    throw misuse('An approver must return true, false or { approved, input?, reason? }.');
  }
  const { approved: isApproved, input, reason, by } = given;
  if (reason !== undefined && typeof reason !== 'string') {
    throw misuse("The 'reason' that an approver returns must be a string for the model.");
  }
  if (by !== undefined && by !== 'user') {
    throw misuse("The 'by' that an approver returns must be 'user', or absent for a program.");
  }
  if (!isApproved) return { approved: false, by, ...(reason !== undefined && { reason }) };
  if (input === undefined) return { approved: true, by };
  if (isRecord(input) && !isTooDeep(input)) return { approved: true, by, input };
  throw misuse("The 'input' that an approver returns must be an object, up to 100 levels deep.");
};
