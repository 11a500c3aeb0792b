import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
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
import { deadline } from './deadline.js';
import { messageOf } from './errors.js';
import { createLazyAbort } from './lazy-abort.js';
import type { ToolUseBlock } from './message.js';
import type { Context } from './context.js';
import type { Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import type { Tool } from './tool.js';
import { failedOutput, type ToolEmission, toOutput, type ToolOutput } from './tool-output.js';

type Needs = Pick<Context, 'toolkit' | 'hooks' | 'interruption' | 'scheduler' | 'limits' | 'lend'>;

/** Runs one tool use to its output. It emits exactly one, and never errors: what goes wrong is an output for the model. */
export const runTool$ = (
  context: Needs,
  run: OpenRun,
  toolUse: ToolUseBlock,
): Observable<ToolOutput> => {
  const { toolkit, interruption, scheduler, limits } = context;
  const { name, input, invalidInput } = toolUse;
  const tool = toolkit.find(name);
  if (tool === undefined) return of(failedOutput(unknownTool(name, toolkit.names)));
  if (invalidInput !== undefined) return of(failedOutput(notAnObject(name, invalidInput)));
  return defer(() => tool.validation$(input)).pipe(
    take(1),
    concatMap((validation) =>
      validation.valid
        ? output$(context, run, tool, toolUse, validation.value)
        : of(failed(invalid(name, validation.problems))),
    ),
    deadline(timeoutOf(name, limits.timeouts), scheduler, `The tool '${name}'`),
    takeUntil(interruption.cut$),
    catchError((error: unknown) => of(failed(`Failed: ${messageOf(error)}`))),
    defaultIfEmpty(undefined),
    map((emission) => emission?.output ?? missing(interruption.current !== undefined)),
  );
};

type OutputEmission = Extract<ToolEmission, { readonly type: 'output' }>;

const failed = (text: string): OutputEmission => ({ type: 'output', output: failedOutput(text) });

/** The last output that a tool emits; what else it does is told. It is subscribed to once. */
const output$ = (
  { hooks, lend }: Needs,
  { iteration }: OpenRun,
  tool: Tool,
  toolUse: ToolUseBlock,
  input: unknown,
): Observable<OutputEmission> => {
  const abort = createLazyAbort();
  let finished = false;
  return tool.run$(input, lend(toolUse.id, iteration, abort)).pipe(
    contained(),
    filter((emission): emission is OutputEmission => {
      if (emission.type === 'output') return true;
      hooks.report(iteration, { type: 'actingChunk', toolUse, value: emission.value });
      return false;
    }),
    takeLast(1),
    tap({
      complete: () => {
        finished = true;
      },
      finalize: () => {
        if (!finished) abort.abort();
      },
    }),
  );
};

const timeoutOf = (name: string, { tools = {}, toolMs }: Timeouts): number | undefined =>
  Object.hasOwn(tools, name) ? tools[name] : toolMs;

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
