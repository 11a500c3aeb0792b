import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  finalize,
  map,
  mergeMap,
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
import type { ToolUseBlock } from './message.js';
import type { Context } from './context.js';
import type { Timeouts } from './limits.js';
import type { OpenRun } from './run.js';
import type { Tool } from './tool.js';
import { failedOutput, toOutput, type ToolOutput } from './tool-output.js';

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
        : of(failedOutput(invalid(name, validation.problems))),
    ),
    deadline(timeoutOf(name, limits.timeouts), scheduler, `The tool '${name}'`),
    takeUntil(interruption.cut$),
    catchError((error: unknown) => of(failedOutput(`Failed: ${messageOf(error)}`))),
    defaultIfEmpty(undefined),
    map((output) => output ?? missing(interruption.current !== undefined)),
  );
};

const output$ = (
  { hooks, lend }: Needs,
  { iteration }: OpenRun,
  tool: Tool,
  toolUse: ToolUseBlock,
  input: unknown,
): Observable<ToolOutput> =>
  defer(() => {
    const abort = new AbortController();
    let finished = false;
    return tool.run$(input, lend(toolUse.id, iteration, abort.signal)).pipe(
      contained(),
      mergeMap((emission) => {
        if (emission.type === 'output') return of(emission.output);
        hooks.report(iteration, { type: 'actingChunk', toolUse, value: emission.value });
        return EMPTY;
      }),
      takeLast(1),
      tap({
        complete: () => {
          finished = true;
        },
      }),
      finalize(() => {
        if (!finished) abort.abort();
      }),
    );
  });

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
