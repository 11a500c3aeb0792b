import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  from,
  identity,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableInput,
  of,
  take,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { contained } from '../contained.js';
import type { Context } from '../context.js';
import { copied } from '../copied.js';
import { MillraceError, misuse, toMillraceError } from '../errors.js';
import { frozen } from '../frozen.js';
import { isRecord, isTooDeep } from '../json.js';
import type { ToolUseBlock } from '../message.js';
import type { OpenRun } from '../run.js';
import { cell, offTheClock } from '../step.js';
import { withoutKeys } from './parameters.js';
import type { ApprovalRequest, Approver, Tool, ToolContext, Verdict } from './types.js';

type Needs = Pick<Context, 'hooks' | 'scheduler' | 'limits' | 'approvers' | 'local'>;

export interface PendingApprovals {
  /** Adds one, and returns a function that removes it. */
  readonly await: (toolUse: ToolUseBlock, iteration: number) => () => void;
}

/** Who keeps such a list for a call, if somebody does. */
export const pendingApprovals = cell('call', (): { keeper?: PendingApprovals } => ({}));

interface Decision {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** Asks an approver. Emits one decision, and never errors: nothing runs because an approver has failed, or is late. */
const decided$ = (
  { hooks, scheduler, limits, local }: Needs,
  { iteration }: OpenRun,
  approver: boolean | Approver,
  request: ApprovalRequest,
): Observable<Decision> => {
  if (typeof approver === 'boolean') return of({ approved: approver });
  const { approvalMs } = limits.timeouts;
  const late = new MillraceError('timeout', 'Nobody has decided on it in time.');
  const failed = (cause: unknown): Decision => {
    if (cause === late) return { approved: false, reason: late.message };
    const error = toMillraceError(cause, 'config', `The approver of '${request.tool}' failed`);
    hooks.report(iteration, { type: 'handlerError', of: 'approve', name: request.tool, error });
    return { approved: false, reason: 'It could not be decided on.' };
  };
  const verdict$ = defer(() => verdicts(approver(request)));
  return offTheClock({ local, scheduler }, verdict$).pipe(
    contained(),
    take(1),
    approvalMs === undefined
      ? identity
      : timeout({ each: approvalMs, scheduler, with: () => throwError(() => late) }),
    map(toDecision),
    catchError((cause: unknown) => of(failed(cause))),
    defaultIfEmpty({ approved: false, reason: 'Nobody has decided on it.' }),
  );
};

const verdicts = (given: Verdict | ObservableInput<Verdict>): Observable<unknown> =>
  isVerdict(given) || !isObservableInput(given) ? of(given) : from(given);

const isObservableInput = (given: unknown): given is ObservableInput<unknown> =>
  typeof given === 'object' &&
  given !== null &&
  ('subscribe' in given ||
    'then' in given ||
    Symbol.iterator in given ||
    Symbol.asyncIterator in given ||
    Symbol.observable in given);

const isVerdict = (given: unknown): given is Verdict =>
  typeof given === 'boolean' || (isRecord(given) && 'approved' in given);

/** From outside: all but a plain yes is a no. */
const toDecision = (given: unknown): Decision => {
  if (typeof given === 'boolean') return { approved: given };
  if (!isRecord(given) || typeof given['approved'] !== 'boolean') {
    throw misuse('An approver must give true, false or { approved, input?, reason? }.');
  }
  const { approved: isApproved, input, reason } = given;
  if (!isApproved) return { approved: false, ...(typeof reason === 'string' && { reason }) };
  if (input === undefined) return { approved: true };
  if (isRecord(input) && !isTooDeep(input)) return { approved: true, input };
  throw misuse('The input that an approver gives must be an object, of at most 100 levels.');
};

export interface Ready {
  readonly status: 'ready';
  readonly toolUse: ToolUseBlock;
  /** The input as it was said, with what the program has set. */
  readonly input: Readonly<Record<string, unknown>>;
  /** What the schema has made of it. */
  readonly value: unknown;
}

export type Checked =
  | Ready
  | {
      readonly status: 'refused';
      readonly toolUse: ToolUseBlock;
      readonly problems: readonly string[];
      readonly why: string;
    };

/** One use that is to be approved. */
export interface Use {
  readonly tool: Tool;
  readonly lent: ToolContext;
  readonly check$: (toolUse: ToolUseBlock) => Observable<Checked>;
}

/** Leads what is valid past those who decide on it. What they make of it is checked again. */
export const approved = (
  context: Needs,
  run: OpenRun,
  use: Use,
): MonoTypeOperatorFunction<Checked> => {
  const approvers = [use.tool.approve, ...context.approvers].filter(isApprover);
  return (checked$) =>
    approvers.reduce(
      (before$, approver) =>
        before$.pipe(
          concatMap((checked) =>
            checked.status === 'ready'
              ? afterApproval$(context, run, use, approver, checked)
              : of(checked),
          ),
        ),
      checked$,
    );
};

const isApprover = (approver: Tool['approve']): approver is false | Approver =>
  approver !== undefined && approver !== true;

const afterApproval$ = (
  context: Needs,
  run: OpenRun,
  { tool: { name, hidden = [] }, lent, check$ }: Use,
  approver: false | Approver,
  ready: Ready,
): Observable<Checked> =>
  defer(() => {
    const { hooks, local } = context;
    const { iteration } = run;
    const { toolUse, input, value } = ready;
    const refused = (why: string): Checked => ({ status: 'refused', toolUse, problems: [], why });
    hooks.report(iteration, { type: 'approvalRequested', toolUse });
    const settled = local(pendingApprovals).keeper?.await(toolUse, iteration);
    const request: ApprovalRequest = {
      tool: name,
      toolUseId: toolUse.id,
      // Copies: what was approved is what runs.
      input: copiedRecord(input),
      value: copied(value),
      context: lent,
      problems$: (other) =>
        isRecord(other)
          ? check$(withInput(toolUse, other, hidden)).pipe(map(problemsOf))
          : of(['The input must be an object.']),
    };
    return decided$(context, run, approver, request).pipe(
      // Before the tool runs, and also where nobody waits for the decision any more.
      tap({ next: () => settled?.(), finalize: () => settled?.() }),
      concatMap(({ approved: isApproved, input: edit, reason }) => {
        const edited = edit === undefined ? toolUse : withInput(toolUse, edit, hidden);
        const why = reason === undefined ? {} : { reason };
        const decided = { toolUse: edited, approved: isApproved, ...why };
        hooks.report(iteration, { type: 'approvalDecided', ...decided });
        if (!isApproved) return of(refused(denied(name, reason)));
        if (edit === undefined) return of(ready);
        return check$(edited).pipe(
          map((checked) =>
            checked.status === 'ready' ? checked : refused(misedited(name, checked.problems)),
          ),
        );
      }),
    );
  });

const problemsOf = (checked: Checked): readonly string[] =>
  checked.status === 'ready' ? [] : checked.problems;

const copiedRecord = (
  input: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> => {
  const copy = copied(input);
  return isRecord(copy) ? copy : {};
};

const withInput = (
  toolUse: ToolUseBlock,
  input: ToolUseBlock['input'],
  hidden: readonly string[],
): ToolUseBlock => frozen({ ...toolUse, input: copiedRecord(withoutKeys(input, hidden)) });

const denied = (name: string, reason: string | undefined): string =>
  `Not run: this use of ${name} was not approved.${reason === undefined ? '' : ` ${reason}`}`;

const misedited = (name: string, problems: readonly string[]): string =>
  `Not run: this use of ${name} was approved with another input, which is not valid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
