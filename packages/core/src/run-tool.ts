import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  identity,
  map,
  type Observable,
  of,
  type OperatorFunction,
  take,
  takeLast,
  takeUntil,
  tap,
} from 'rxjs';
import { contained } from './contained.js';
import type { Context } from './context.js';
import { deadline } from './deadline.js';
import { messageOf } from './errors.js';
import { frozen } from './frozen.js';
import { isRecord } from './json.js';
import { createLazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import type { Validation } from './schema.js';
import { failedOutput, type ToolEmission, toOutput, type ToolOutput } from './tool-output.js';
import { decided$, type Decision } from './tools/approve.js';
import type { Planned } from './tools/batch.js';
import { retryTransient } from './tools/transient.js';
import type { Approver, Tool, ToolContext } from './tools/types.js';

type Needs = Pick<
  Context,
  'toolkit' | 'hooks' | 'interruption' | 'scheduler' | 'limits' | 'values' | 'approve' | 'lend'
>;

/** What a tool use came to. */
export interface Ran {
  readonly output: ToolOutput;
  /** Whether the tool was run, or answered without. */
  readonly executed: boolean;
}

/**
 * Runs one tool use to its output: look-up, validation of all that the tool is given, approval, the run. It emits exactly one, and never
 * errors: what goes wrong is an output for the model.
 */
export const runTool$ = (
  context: Needs,
  run: OpenRun,
  toolUse: ToolUseBlock,
  extras: Planned['extras'],
): Observable<Ran> => {
  const { toolkit, interruption, scheduler, limits, values } = context;
  const { name, invalidInput } = toolUse;
  const tool = toolkit.find(name);
  if (tool === undefined) return of(notRun(unknownTool(name, toolkit.names)));
  if (invalidInput !== undefined) return of(notRun(notAnObject(name, invalidInput)));
  const abort = createLazyAbort();
  const lent = context.lend(toolUse.id, run.iteration, abort);
  const inTime = <T>() =>
    deadline<T>(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`);
  const check$ = (input: unknown): Observable<Validation> =>
    defer(() => tool.validation$(input, values, extras)).pipe(take(1), inTime());
  let [executed, finished] = [false, false];
  return check$(toolUse.input).pipe(
    approved(context, run, { tool, toolUse, lent, check$ }),
    concatMap((checked) => {
      executed = checked.valid;
      return checked.valid
        ? output$(context, run, tool, toolUse, checked.value, lent).pipe(inTime())
        : of(failedOutput(checked.why));
    }),
    tap({
      complete: () => {
        finished = true;
      },
      finalize: () => {
        if (!finished) abort.abort();
      },
    }),
    takeUntil(interruption.cut$),
    catchError((error: unknown) => of(failedOutput(`Failed: ${messageOf(error)}`))),
    defaultIfEmpty(undefined),
    map((output) => ({ output: output ?? missing(interruption.current !== undefined), executed })),
  );
};

const notRun = (why: string): Ran => ({ output: failedOutput(why), executed: false });

/** What a tool may be run with, or why it is not run. */
type Checked =
  | { readonly valid: true; readonly value: unknown }
  | { readonly valid: false; readonly why: string };

/** One use that is to be approved. */
interface Use {
  readonly tool: Tool;
  readonly toolUse: ToolUseBlock;
  readonly lent: ToolContext;
  readonly check$: (input: unknown) => Observable<Validation>;
}

/** Leads what is valid past those who decide on it. What they make of it is checked again. */
const approved = (
  context: Needs,
  run: OpenRun,
  use: Use,
): OperatorFunction<Validation, Checked> => {
  const { name, approve } = use.tool;
  const approvers = [approve, context.approve].filter(isApprover);
  const checked = map((validation: Validation): Checked =>
    validation.valid ? validation : { valid: false, why: invalid(name, validation.problems) },
  );
  return (validation$) =>
    approvers.reduce(
      (checked$, approver) =>
        checked$.pipe(
          concatMap((it) =>
            it.valid
              ? decision$(context, run, use, approver, it.value).pipe(
                  concatMap(({ approved: isApproved, input, reason }) =>
                    isApproved
                      ? input === undefined
                        ? of(it)
                        : use.check$(input).pipe(checked)
                      : of<Checked>({ valid: false, why: denied(name, reason) }),
                  ),
                )
              : of(it),
          ),
        ),
      validation$.pipe(checked),
    );
};

const isApprover = (approver: Tool['approve']): approver is false | Approver =>
  approver !== undefined && approver !== true;

/** Asks, and tells that it is asked and what was decided. */
const decision$ = (
  { hooks, scheduler, limits }: Needs,
  { iteration }: OpenRun,
  { tool, toolUse, lent }: Use,
  approver: false | Approver,
  input: unknown,
): Observable<Decision> =>
  defer(() => {
    hooks.report(iteration, { type: 'approvalRequested', toolUse });
    const { approvalMs } = limits.timeouts;
    const inTime = deadline(approvalMs, scheduler, `The approval of ${tool.name}`, 'approvalMs');
    const request = { tool: tool.name, toolUseId: toolUse.id, input, context: lent };
    return decided$(approver, request, inTime).pipe(
      tap(({ approved: isApproved, input: edited, reason }) =>
        hooks.report(iteration, {
          type: 'approvalDecided',
          toolUse: isRecord(edited) ? frozen({ ...toolUse, input: edited }) : toolUse,
          approved: isApproved,
          ...(reason !== undefined && { reason }),
        }),
      ),
    );
  });

type OutputEmission = Extract<ToolEmission, { readonly type: 'output' }>;

/** The last output that a tool emits; what else it does is told. */
const output$ = (
  { hooks, scheduler }: Needs,
  { iteration }: OpenRun,
  tool: Tool,
  toolUse: ToolUseBlock,
  input: unknown,
  lent: ToolContext,
): Observable<ToolOutput> =>
  defer(() => tool.run$(input, lent)).pipe(
    contained(),
    tool.retry === undefined ? identity : retryTransient(tool.retry, scheduler),
    filter((emission): emission is OutputEmission => {
      if (emission.type === 'output') return true;
      hooks.report(iteration, { type: 'actingChunk', toolUse, value: emission.value });
      return false;
    }),
    takeLast(1),
    map(({ output }) => output),
  );

const timeoutOf = (
  { name, timeoutMs }: Tool,
  { tools = {}, toolMs }: Timeouts,
): number | undefined => (Object.hasOwn(tools, name) ? tools[name] : (timeoutMs ?? toolMs));

const missing = (interrupted: boolean): ToolOutput =>
  interrupted ? failedOutput('Interrupted before it finished.') : toOutput(undefined);

const unknownTool = (name: string, names: readonly string[]): string =>
  names.length === 0
    ? `No tool is named '${name}': there are no tools.`
    : `No tool is named '${name}'. The tools are: ${names.join(', ')}.`;

const notAnObject = (name: string, text: string): string =>
  `The arguments for ${name} are not a JSON object: ${text.slice(0, 200)}`;

const invalid = (name: string, problems: readonly string[]): string =>
  `The arguments for ${name} are invalid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;

const denied = (name: string, reason: string | undefined): string =>
  `Not run: this use of ${name} was not approved.${reason === undefined ? '' : ` ${reason}`}`;
