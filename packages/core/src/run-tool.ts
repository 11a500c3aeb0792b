import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  map,
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
import { createLazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import { failedOutput, type ToolEmission, toOutput, type ToolOutput } from './tool-output.js';
import { approved, type Checked, type Ready } from './tools/approve.js';
import type { Planned } from './tools/batch.js';
import { retryTransient } from './tools/transient.js';
import type { Validation } from './schema.js';
import type { Tool, ToolContext } from './tools/types.js';

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
  { extras: passedOn, toolUse: planned, isKnown }: Planned,
): Observable<Ran> => {
  const { toolkit, interruption, scheduler, limits, values } = context;
  const { name, invalidInput } = asked;
  const isAsPlanned = name === planned.name;
  // A tool that has come since the batch was planned is for the next turn.
  const tool = isAsPlanned && !isKnown ? undefined : toolkit.find(name);
  const extras = isAsPlanned ? passedOn : {};
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
      defaultIfEmpty(noVerdict),
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
        ? output$(context, run, tool, checked, lent, check$).pipe(inTime())
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

const noVerdict: Validation = { valid: false, problems: ['they have not been checked'] };

type OutputEmission = Extract<ToolEmission, { readonly type: 'output' }>;

/** The last output that a tool emits; what else it does is told. A second attempt has an input of its own. */
const output$ = (
  { hooks, scheduler }: Needs,
  { iteration }: OpenRun,
  tool: Tool,
  { toolUse, value }: Ready,
  lent: ToolContext,
  check$: (toolUse: ToolUseBlock) => Observable<Checked>,
): Observable<ToolOutput> => {
  const attempt$ =
    tool.retry === undefined
      ? defer(() => tool.run$(value, lent)).pipe(contained())
      : check$(toolUse).pipe(
          concatMap((checked) =>
            checked.status === 'ready' ? tool.run$(checked.value, lent) : EMPTY,
          ),
          contained(),
          retryTransient(tool.retry, scheduler),
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
