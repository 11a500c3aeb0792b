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
  reduce,
  take,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { spentBelow, refuseHalted } from './places.js';
import { contained } from './contained.js';
import type { Context } from './context.js';
import { deadline } from './deadline.js';
import type { Limits, Timeouts } from './limits.js';
import {
  isFatal,
  isMillraceError,
  messageOf,
  MillraceError,
  misuse,
  toMillraceError,
} from './errors.js';
import { copied, frozen } from './frozen.js';
import { readJson } from './json-text/read-json.js';
import { isRecord, isTooDeep } from './json.js';
import { abortsUnlessComplete, createLazyAbort, type LazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { OpenRun } from './run.js';
import { cell, offTheClock } from './step.js';
import { type Validation, withoutKeys } from './schema.js';
import { failedOutput, type ToolOutput } from './tool-output.js';
import type { Planned } from './tools/batch.js';
import type { ApprovalRequest, Approver, Tool, ToolContext, Verdict } from './tools/types.js';
import type { CostBelow } from './spending.js';
import { noUsage } from './usage.js';

type Needs = Pick<
  Context,
  'toolkit' | 'hooks' | 'scheduler' | 'limits' | 'values' | 'local' | 'lend'
>;

export interface Decision extends CostBelow {
  /** With the edits of interceptors, and of those who approved of it. */
  readonly toolUse: ToolUseBlock;
  /** What answers it where it is not run. */
  readonly answer?: ToolOutput;
  /** It cannot be run for what the model said. A use that somebody would not have is no failure. */
  readonly failed: boolean;
  /** What the tool's schema has made of its input. */
  readonly value?: unknown;
}

/** A use that is answered without a run, and is no failure. */
export const answered = (toolUse: ToolUseBlock, answer: ToolOutput): Decision => ({
  toolUse,
  answer,
  failed: false,
  usage: noUsage,
});

/** Decides on a tool use: look-up, validation of all that the tool is given, approval. It emits one decision, and never errors: what goes wrong is told the model. */
export const decision$ = (
  context: Needs,
  run: OpenRun,
  asked: ToolUseBlock,
  plan: Planned,
): Observable<Decision> => {
  const { toolkit, limits } = context;
  const { name, invalidInput } = asked;
  const isAsPlanned = name === plan.toolUse.name;
  const tool = toolkit.find(name);
  const cannot = (why: string): Observable<Decision> =>
    of({ ...answered(asked, failedOutput(why)), failed: true });
  if (tool === undefined) return cannot(unknownTool(name, toolkit.names));
  if (isAsPlanned && plan.tool === undefined) return cannot(notYet(name));
  if (!isAsPlanned && !mayBecome(tool, plan, limits)) return cannot(renamed(name));
  if (invalidInput !== undefined) return cannot(notAnObject(name, invalidInput));
  const abort = createLazyAbort();
  const stepId = `${run.iteration}/${plan.index}/intent`;
  const lent = context.lend({ toolUseId: asked.id, stepId, purpose: 'approval' }, run, abort);
  const check$ = (toolUse: ToolUseBlock): Observable<Checked> =>
    checked$(context, tool, toolUse, plan);
  return check$(asked).pipe(
    approved(context, run, { tool, lent, check$ }, abort),
    map((checked): Decision => {
      refuseHalted(lent);
      const { toolUse } = checked;
      return checked.status === 'ready'
        ? { toolUse, failed: false, ...spentBelow(lent), value: checked.value }
        : {
            toolUse,
            answer: failedOutput(checked.why),
            failed: checked.problems.length > 0,
            ...spentBelow(lent),
          };
    }),
    catchError((error: unknown) => {
      refuseHalted(lent);
      if (isFatal(error)) throw error;
      return of({ ...answered(asked, failedBy(context, run, name, error)), failed: true });
    }),
  );
};

/** What a tool use is told that an interrupt has cut. */
export const interrupted = 'Interrupted before it finished.';

/** Validates what a tool is given, in the time that it has. */
export const checked$ = (
  { scheduler, limits, values }: Pick<Needs, 'scheduler' | 'limits' | 'values'>,
  tool: Tool,
  toolUse: ToolUseBlock,
  plan: Planned,
): Observable<Checked> => {
  const { name } = tool;
  const extras = name === plan.toolUse.name ? plan.extras : {};
  return defer(() => tool.validation$(toolUse.input, values, extras)).pipe(
    reduce((first: Validation | undefined, validation) => first ?? validation, undefined),
    deadline(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`),
    map((validation = noVerdict) =>
      validation.valid
        ? { status: 'ready', toolUse, input: inputOf(validation), value: validation.value }
        : { ...validation, status: 'refused', toolUse, why: invalid(name, validation.problems) },
    ),
  );
};

export const timeoutOf = (
  { name, timeoutMs }: Tool,
  { tools = {}, toolMs }: Timeouts,
): number | undefined => (Object.hasOwn(tools, name) ? tools[name] : (timeoutMs ?? toolMs));

/** A use is planned by the name that the model gave: another tool must not get past what was planned. */
const mayBecome = (
  tool: Tool,
  { tool: former }: Planned,
  { maxToolCalls }: Pick<Limits, 'maxToolCalls'>,
): boolean =>
  former === undefined
    ? tool.exclusive !== true && maxToolCalls === Infinity
    : tool.exclusive !== true || former.exclusive === true;

const noVerdict: Validation = { valid: false, problems: ['they have not been checked'] };

const inputOf = ({ value, input = value }: Extract<Validation, { valid: true }>): Ready['input'] =>
  isRecord(input) ? input : {};

const unknownTool = (name: string, names: readonly string[]): string =>
  names.length === 0
    ? `No tool is named '${name}': there are no tools.`
    : `No tool is named '${name}'. The tools are: ${names.join(', ')}.`;

const notYet = (name: string): string =>
  `Not run: the tool ${name} can be used from your next step on. Ask for it again.`;

const renamed = (name: string): string =>
  `Not run: ${name} has to be asked for by its own name. Ask for it again.`;

const notAnObject = (name: string, text: string): string => {
  const reading = readJson(text);
  const why = 'problem' in reading ? ` (${reading.problem.slice(0, -1)})` : '';
  return `The arguments for ${name} are not a JSON object: ${text.slice(0, 200)}${why}`;
};

const invalid = (name: string, problems: readonly string[]): string =>
  `The arguments for ${name} are invalid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;

/** What a model is told of an error of a tool. What a program has not set up is no matter of the model's. */
export const failedBy = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  name: string,
  error: unknown,
): ToolOutput => {
  if (!isMillraceError(error) || error.code !== 'config') {
    return failedOutput(`Failed: ${messageOf(error)}`);
  }
  hooks.report(iteration, { type: 'handlerError', of: 'tool', name, error });
  return failedOutput('Failed: the tool is not set up. Go on without it.');
};

/** Decide on every run of a tool of the call, after the tool's own `approve`. */
export const approversOfCall = cell('call', (): Approver[] => []);

/** Adds a tool call that waits for approval to a list, if somebody keeps one for the call, and returns a function that removes it. */
export const pendingApprovals = cell(
  'call',
  (): { add?: (toolUse: ToolUseBlock, iteration: number) => () => void } => ({}),
);

interface Ruling {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** Asks an approver. Emits one decision, and never errors: nothing runs because an approver has failed, or is late. */
const ruling$ = (
  { hooks, scheduler, limits, local }: Needs,
  { iteration }: OpenRun,
  approver: boolean | Approver,
  request: ApprovalRequest,
): Observable<Ruling> => {
  if (typeof approver === 'boolean') return of({ approved: approver });
  const { approvalMs } = limits.timeouts;
  const late = new MillraceError('timeout', 'Nobody has decided on it in time.');
  const failed = (cause: unknown): Ruling => {
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
    map(toRuling),
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
const toRuling = (given: unknown): Ruling => {
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

interface Ready {
  readonly status: 'ready';
  readonly toolUse: ToolUseBlock;
  /** The input as it was said, with what the program has set. */
  readonly input: Readonly<Record<string, unknown>>;
  /** What the schema has made of it. */
  readonly value: unknown;
}

type Checked =
  | Ready
  | {
      readonly status: 'refused';
      readonly toolUse: ToolUseBlock;
      readonly problems: readonly string[];
      readonly why: string;
    };

/** One use that is to be approved. */
interface Pending {
  readonly tool: Tool;
  readonly lent: ToolContext;
  readonly check$: (toolUse: ToolUseBlock) => Observable<Checked>;
}

/** Leads what is valid past those who decide on it. What they make of it is checked again. */
const approved = (
  context: Needs,
  run: OpenRun,
  use: Pending,
  abort: LazyAbort,
): MonoTypeOperatorFunction<Checked> => {
  const approvers = [use.tool.approve, ...context.local(approversOfCall)].filter(isApprover);
  const asked = (before$: Observable<Checked>, approver: false | Approver): Observable<Checked> =>
    before$.pipe(concatMap((checked) => afterApproval$(context, run, use, approver, checked)));
  return approvers.length === 0
    ? identity
    : (checked$) => approvers.reduce(asked, checked$).pipe(abortsUnlessComplete(abort));
};

const isApprover = (approver: Tool['approve']): approver is false | Approver =>
  approver !== undefined && approver !== true;

const afterApproval$ = (
  context: Needs,
  run: OpenRun,
  { tool: { name, hidden = [] }, lent, check$ }: Pending,
  approver: false | Approver,
  before: Checked,
): Observable<Checked> =>
  defer(() => {
    if (before.status !== 'ready') return of(before);
    const { hooks, local } = context;
    const { iteration } = run;
    const { toolUse, input, value } = before;
    const refused = (why: string): Checked => ({ status: 'refused', toolUse, problems: [], why });
    hooks.report(iteration, { type: 'approvalRequested', toolUse });
    const settled = local(pendingApprovals).add?.(toolUse, iteration);
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
    return ruling$(context, run, approver, request).pipe(
      // Before the tool runs, and also where nobody waits for the decision any more.
      tap({ next: () => settled?.(), finalize: () => settled?.() }),
      concatMap(({ approved: isApproved, input: edit, reason }) => {
        const edited = edit === undefined ? toolUse : withInput(toolUse, edit, hidden);
        const why = reason === undefined ? {} : { reason };
        const decided = { toolUse: edited, approved: isApproved, ...why };
        hooks.report(iteration, { type: 'approvalDecided', ...decided });
        if (!isApproved) return of(refused(denied(name, reason)));
        if (edit === undefined) return of(before);
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

const copiedRecord = (input: ToolUseBlock['input']): ToolUseBlock['input'] => {
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
