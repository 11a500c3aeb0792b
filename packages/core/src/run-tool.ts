import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  identity,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
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
import { createLazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import { failedOutput, type ToolEmission, toOutput, type ToolOutput } from './tool-output.js';
import { decided$ } from './tools/approve.js';
import type { Planned } from './tools/batch.js';
import { retryTransient } from './tools/transient.js';
import type { Approver, Tool, ToolContext } from './tools/types.js';

type Needs = Pick<
  Context,
  'toolkit' | 'hooks' | 'interruption' | 'scheduler' | 'limits' | 'values' | 'approve' | 'lend'
>;

/** What a tool use came to. */
export interface Ran {
  /** As it was run, with the edits of those who approved of it. */
  readonly toolUse: ToolUseBlock;
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
  asked: ToolUseBlock,
  extras: Planned['extras'],
): Observable<Ran> => {
  const { toolkit, interruption, scheduler, limits, values } = context;
  const { name, invalidInput } = asked;
  const tool = toolkit.find(name);
  const notRun = (why: string): Observable<Ran> =>
    of({ toolUse: asked, output: failedOutput(why), executed: false });
  if (tool === undefined) return notRun(unknownTool(name, toolkit.names));
  if (invalidInput !== undefined) return notRun(notAnObject(name, invalidInput));
  const abort = createLazyAbort();
  const lent = context.lend(asked.id, run.iteration, abort);
  const inTime = <T>() =>
    deadline<T>(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`);
  const check$ = (toolUse: ToolUseBlock): Observable<Checked> =>
    defer(() => tool.validation$(toolUse.input, values, extras)).pipe(
      take(1),
      inTime(),
      map((validation) =>
        validation.valid
          ? { status: 'ready', toolUse, value: validation.value }
          : { status: 'refused', toolUse, why: invalid(name, validation.problems) },
      ),
    );
  let toolUse = asked;
  let executed = false;
  let finished = false;
  return check$(asked).pipe(
    approved(context, run, { tool, lent, check$ }),
    concatMap((checked) => {
      toolUse = checked.toolUse;
      executed = checked.status === 'ready';
      return checked.status === 'ready'
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
    map((output) => ({
      toolUse,
      output: output ?? missing(interruption.current !== undefined),
      executed,
    })),
  );
};

/** A tool use as it stands, with what the tool is run with, or why it is not run. */
type Checked = { readonly toolUse: ToolUseBlock } & (
  | { readonly status: 'ready'; readonly value: unknown }
  | { readonly status: 'refused'; readonly why: string }
);

/** One use that is to be approved. */
interface Use {
  readonly tool: Tool;
  readonly lent: ToolContext;
  readonly check$: (toolUse: ToolUseBlock) => Observable<Checked>;
}

/** Leads what is valid past those who decide on it. What they make of it is checked again. */
const approved = (context: Needs, run: OpenRun, use: Use): MonoTypeOperatorFunction<Checked> => {
  const approvers = [use.tool.approve, context.approve].filter(isApprover);
  return (checked$) =>
    approvers.reduce(
      (before$, approver) =>
        before$.pipe(
          concatMap((checked) =>
            checked.status === 'ready'
              ? afterApproval$(context, run, use, approver, checked.toolUse, checked.value)
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
  { tool: { name }, lent, check$ }: Use,
  approver: false | Approver,
  toolUse: ToolUseBlock,
  value: unknown,
): Observable<Checked> =>
  defer(() => {
    hooks.report(iteration, { type: 'approvalRequested', toolUse });
    const { approvalMs } = limits.timeouts;
    const inTime = deadline(approvalMs, scheduler, `The approval of ${name}`, 'approvalMs');
    const request = { tool: name, toolUseId: toolUse.id, input: value, context: lent };
    return decided$(approver, request, inTime).pipe(
      concatMap(({ approved: isApproved, input, reason }) => {
        const edited = input === undefined ? toolUse : frozen({ ...toolUse, input });
        hooks.report(iteration, {
          type: 'approvalDecided',
          toolUse: edited,
          approved: isApproved,
          ...(reason !== undefined && { reason }),
        });
        if (!isApproved)
          return of<Checked>({ status: 'refused', toolUse, why: denied(name, reason) });
        return edited === toolUse
          ? of<Checked>({ status: 'ready', toolUse, value })
          : check$(edited);
      }),
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
