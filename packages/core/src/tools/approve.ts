import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  from,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableInput,
  of,
  take,
} from 'rxjs';
import { contained } from '../contained.js';
import type { Context } from '../context.js';
import { deadline } from '../deadline.js';
import { messageOf } from '../errors.js';
import { frozen } from '../frozen.js';
import { isRecord, isTooDeep } from '../json.js';
import type { ToolUseBlock } from '../message.js';
import type { OpenRun } from '../run.js';
import { withoutKeys } from './parameters.js';
import type { ApprovalRequest, Approver, Tool, ToolContext, Verdict } from './types.js';

type Needs = Pick<Context, 'hooks' | 'scheduler' | 'limits' | 'approve'>;

/** What was decided. */
interface Decision {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** Asks an approver. Emits one decision, and never errors: nothing runs because an approver has failed, or is late. */
const decided$ = (
  approver: boolean | Approver,
  request: ApprovalRequest,
  inTime: MonoTypeOperatorFunction<unknown>,
): Observable<Decision> =>
  typeof approver === 'boolean'
    ? of({ approved: approver })
    : defer(() => verdicts(approver(request))).pipe(
        contained(),
        take(1),
        inTime,
        map(toDecision),
        catchError((error: unknown) => of({ approved: false, reason: messageOf(error) })),
        defaultIfEmpty({ approved: false, reason: 'Nobody has decided on it.' }),
      );

const verdicts = (given: Verdict | ObservableInput<Verdict>): Observable<unknown> =>
  isVerdict(given) ? of(given) : from(given);

const isVerdict = (given: unknown): given is Verdict =>
  typeof given === 'boolean' || (isRecord(given) && 'approved' in given);

/** From outside: all but a plain yes is a no. */
const toDecision = (given: unknown): Decision => {
  if (given === true) return { approved: true };
  if (!isRecord(given) || given['approved'] !== true) {
    const reason = isRecord(given) ? given['reason'] : undefined;
    return { approved: false, ...(typeof reason === 'string' && { reason }) };
  }
  const { input } = given;
  if (input === undefined) return { approved: true };
  return isRecord(input) && !isTooDeep(input)
    ? { approved: true, input }
    : { approved: false, reason: 'The input that was approved is not a plain object.' };
};

/** A tool use whose input is valid, with what the tool is to be run with. */
export interface Ready {
  readonly status: 'ready';
  readonly toolUse: ToolUseBlock;
  readonly value: unknown;
}

/** A tool use as it stands: ready, or refused, and why. */
export type Checked =
  Ready | { readonly status: 'refused'; readonly toolUse: ToolUseBlock; readonly why: string };

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
  const approvers = [use.tool.approve, context.approve].filter(isApprover);
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

/** Asks, tells that it is asked and what was decided, and does as was decided. */
const afterApproval$ = (
  { hooks, scheduler, limits }: Needs,
  { iteration }: OpenRun,
  { tool: { name, hidden = [] }, lent, check$ }: Use,
  approver: false | Approver,
  { toolUse, value }: Ready,
): Observable<Checked> =>
  defer(() => {
    hooks.report(iteration, { type: 'approvalRequested', toolUse });
    const { approvalMs } = limits.timeouts;
    const inTime = deadline(approvalMs, scheduler, `The approval of ${name}`, 'approvalMs');
    const request = { tool: name, toolUseId: toolUse.id, input: value, context: lent };
    return decided$(approver, request, inTime).pipe(
      concatMap(({ approved: isApproved, input, reason }) => {
        const edited = input === undefined ? toolUse : withInput(toolUse, input, hidden);
        hooks.report(iteration, {
          type: 'approvalDecided',
          toolUse: edited,
          approved: isApproved,
          ...(reason !== undefined && { reason }),
        });
        if (!isApproved)
          return of<Checked>({ status: 'refused', toolUse, why: denied(name, reason) });
        // Checked anew in any case: the approver has had the value in its hands.
        return check$(edited);
      }),
    );
  });

/** A tool use with another input. What the program gives is no part of it. */
const withInput = (
  toolUse: ToolUseBlock,
  input: ToolUseBlock['input'],
  hidden: readonly string[],
): ToolUseBlock => frozen({ ...toolUse, input: withoutKeys(input, hidden) });

const denied = (name: string, reason: string | undefined): string =>
  `Not run: this use of ${name} was not approved.${reason === undefined ? '' : ` ${reason}`}`;
