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
  take,
  takeLast,
  takeUntil,
  tap,
} from 'rxjs';
import { usageBelow } from './call-scope.js';
import { contained } from './contained.js';
import { copied } from './copied.js';
import type { Context } from './context.js';
import { deadline } from './deadline.js';
import { isMillraceError, messageOf } from './errors.js';
import { isRecord } from './json.js';
import { createLazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { Limits, Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import { failedOutput, type ToolEmission, toOutput, type ToolOutput } from './tool-output.js';
import { approved, type Checked, type Ready } from './tools/approve.js';
import type { Planned } from './tools/batch.js';
import { retryTransient } from './tools/transient.js';
import type { Validation } from './schema.js';
import type { Tool, ToolContext } from './tools/types.js';
import { noUsage, type Usage } from './usage.js';

type Needs = Pick<
  Context,
  | 'toolkit'
  | 'hooks'
  | 'interruption'
  | 'scheduler'
  | 'limits'
  | 'values'
  | 'approvers'
  | 'awaitApproval'
  | 'lend'
>;

/** What a tool use came to. */
export interface Ran {
  /** As it was run, with the edits of those who approved of it. */
  readonly toolUse: ToolUseBlock;
  readonly output: ToolOutput;
  /** Whether the tool was run, or answered without. */
  readonly executed: boolean;
  /** The run failed, or could not begin for what the model said. A use that somebody would not have is no failure. */
  readonly failed: boolean;
  /** What the calls have cost that it has made. */
  readonly usage: Usage;
}

/**
 * Runs one tool use to its output: look-up, validation of all that the tool is given, approval, the run. It emits exactly one, and never
 * errors: what goes wrong is an output for the model.
 */
export const runTool$ = (
  context: Needs,
  run: OpenRun,
  asked: ToolUseBlock,
  plan: Planned,
): Observable<Ran> => {
  const { toolkit, interruption, scheduler, limits, values } = context;
  const { name, invalidInput } = asked;
  const isAsPlanned = name === plan.toolUse.name;
  const tool = toolkit.find(name);
  const extras = isAsPlanned ? plan.extras : {};
  const notRun = (why: string): Observable<Ran> =>
    of({
      toolUse: asked,
      output: failedOutput(why),
      executed: false,
      failed: true,
      usage: noUsage,
    });
  if (tool === undefined) return notRun(unknownTool(name, toolkit.names));
  if (isAsPlanned && plan.tool === undefined) return notRun(notYet(name));
  if (!isAsPlanned && !mayBecome(tool, plan, limits)) return notRun(renamed(name));
  if (invalidInput !== undefined) return notRun(notAnObject(name, invalidInput));
  const abort = createLazyAbort();
  const lent = context.lend(asked.id, run, abort);
  const inTime = <T>() =>
    deadline<T>(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`);
  const check$ = (toolUse: ToolUseBlock): Observable<Checked> =>
    defer(() => tool.validation$(toolUse.input, values, extras)).pipe(
      take(1),
      defaultIfEmpty(noVerdict),
      inTime(),
      map((validation) =>
        validation.valid
          ? { status: 'ready', toolUse, input: inputOf(validation), value: validation.value }
          : { ...validation, status: 'refused', toolUse, why: invalid(name, validation.problems) },
      ),
    );
  let toolUse = asked;
  let executed = false;
  let refused = false;
  let finished = false;
  return check$(asked).pipe(
    approved(context, run, { tool, lent, check$ }),
    concatMap((checked) => {
      toolUse = checked.toolUse;
      executed = checked.status === 'ready';
      refused = checked.status === 'refused' && checked.problems.length === 0;
      return checked.status === 'ready'
        ? output$(context, run, tool, checked, lent).pipe(inTime())
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
    catchError((error: unknown) => of(failedBy(context, run, name, error))),
    defaultIfEmpty(undefined),
    map((given) => {
      const output = given ?? missing(interruption.current !== undefined);
      const usage = usageBelow(lent);
      return { toolUse, output, executed, failed: output.isError && !refused, usage };
    }),
  );
};

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

type OutputEmission = Extract<ToolEmission, { readonly type: 'output' }>;

/** The last output that a tool emits; what else it does is told. A tool that may run again gets its input anew each time. */
const output$ = (
  context: Needs,
  { iteration }: OpenRun,
  tool: Tool,
  { toolUse, value }: Ready,
  lent: ToolContext,
): Observable<ToolOutput> => {
  const { hooks, scheduler } = context;
  const { name, retry } = tool;
  const attempt$ = defer(() => {
    // It may have been taken away while somebody decided, or between two attempts.
    if (context.toolkit.find(name) === undefined) return of(gone(name));
    return tool.run$(retry === undefined ? value : copied(value), lent);
  }).pipe(
    contained(),
    retry === undefined
      ? identity
      : retryTransient(retry, scheduler, (error, attempt, attempts, ms) => {
          const message = `The tool '${name}' runs again in ${ms} ms: attempt ${attempt} of ${attempts} failed. ${messageOf(error)}`;
          hooks.report(iteration, { type: 'warning', message });
        }),
  );
  return attempt$.pipe(
    filter((emission): emission is OutputEmission => {
      if (emission.type === 'output') return true;
      hooks.report(iteration, { type: 'actingChunk', toolUse, value: emission.value });
      return false;
    }),
    takeLast(1),
    map(({ output }) => output),
  );
};

const inputOf = ({ value, input = value }: Extract<Validation, { valid: true }>): Ready['input'] =>
  isRecord(input) ? input : {};

/** What a program has not set up is no matter of the model's. */
const failedBy = (
  { hooks }: Needs,
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

const gone = (name: string): OutputEmission => ({
  type: 'output',
  output: failedOutput(`Not run: there is no tool ${name} any more.`),
});

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

const notYet = (name: string): string =>
  `Not run: the tool ${name} can be used from your next step on. Ask for it again.`;

const renamed = (name: string): string =>
  `Not run: ${name} has to be asked for by its own name. Ask for it again.`;

const notAnObject = (name: string, text: string): string =>
  `The arguments for ${name} are not a JSON object: ${text.slice(0, 200)}`;

const invalid = (name: string, problems: readonly string[]): string =>
  `The arguments for ${name} are invalid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
