import { concatMap, defaultIfEmpty, map, type Observable, of, takeUntil } from 'rxjs';
import { frozen } from './frozen.js';
import { cutObservation } from './cut-observation.js';
import { freezeResult } from './freeze-message.js';
import type { ToolResultBlock, ToolUseBlock } from './message.js';
import type { Context } from './context.js';
import type { OpenRun } from './run.js';
import { runTool$ } from './run-tool.js';
import { failedOutput, type ToolOutput } from './tool-output.js';

/** One tool use, answered. */
export interface Acted {
  /** Its place in the message that asked for it. */
  readonly index: number;
  /** As it was run, with the edits of interceptors. */
  readonly toolUse: ToolUseBlock;
  readonly result: ToolResultBlock;
  readonly ms: number;
  readonly finalAnswer: boolean;
  readonly stop: boolean;
}

type Needs = Parameters<typeof runTool$>[0] & Pick<Context, 'call' | 'limits' | 'step$'>;

/**
 * Answers one tool use: interceptors before, look-up, validation, the run itself, interceptors after, the cut.
 * Whatever happens, it emits one result, and makes one `preActing` and one `postActing` event.
 */
export const act$ = (
  context: Needs,
  run: OpenRun,
  asked: ToolUseBlock,
  index: number,
): Observable<Acted> =>
  context.step$(`${run.iteration}/${index}`, () => {
    const { hooks, interruption } = context;
    return hooks.intercepted$(run.iteration, { type: 'preActing', toolUse: asked }).pipe(
      takeUntil(interruption.cut$),
      defaultIfEmpty(undefined),
      concatMap((before) => {
        const toolUse = before === undefined ? asked : frozen({ ...before.toolUse, id: asked.id });
        hooks.report(run.iteration, { type: 'preActing', toolUse });
        return perform$(context, run, index, toolUse, refusal(context, run, before === undefined));
      }),
    );
  });

/** Why a tool use is answered without being run. */
const refusal = (
  { interruption }: Needs,
  { stopping }: OpenRun,
  vetoed: boolean,
): ToolOutput | undefined => {
  if (interruption.current !== undefined) return failedOutput('Not run: the call was interrupted.');
  if (vetoed) return failedOutput('Not run: this use of the tool was rejected.');
  return stopping ? failedOutput('Not run: the call was stopped.') : undefined;
};

const perform$ = (
  context: Needs,
  run: OpenRun,
  index: number,
  toolUse: ToolUseBlock,
  refused: ToolOutput | undefined,
): Observable<Acted> => {
  const { scheduler } = context;
  const startedAt = scheduler.now();
  const output$ = refused === undefined ? runTool$(context, run, toolUse) : of(refused);
  return output$.pipe(
    concatMap((output) => {
      const ms = scheduler.now() - startedAt;
      return finish$(context, run, { index, toolUse, ms }, output);
    }),
  );
};

const finish$ = (
  { hooks, limits }: Needs,
  { iteration }: OpenRun,
  { index, toolUse, ms }: Pick<Acted, 'index' | 'toolUse' | 'ms'>,
  { finalAnswer = false, ...output }: ToolOutput,
): Observable<Acted> => {
  const resultOf = ({ content, isError, details }: ToolOutput): ToolResultBlock => ({
    type: 'tool_result',
    toolUseId: toolUse.id,
    content,
    isError,
    ...(details === undefined ? {} : { details }),
  });
  const cut = (result: ToolResultBlock): ToolResultBlock =>
    freezeResult({
      ...result,
      content: cutObservation(result.content, limits.maxObservation),
    });
  const after = { type: 'postActing', toolUse, result: resultOf(output), ms } as const;
  return hooks.emit$(iteration, finalAnswer ? { ...after, finalAnswer } : after).pipe(
    defaultIfEmpty(undefined),
    map((event) => {
      if (event !== undefined) {
        return {
          index,
          toolUse,
          result: cut({ ...event.result, toolUseId: toolUse.id }),
          ms,
          finalAnswer: event.finalAnswer === true && !event.result.isError,
          stop: event.stop === true,
        };
      }
      const result = freezeResult(resultOf(failedOutput('The result of this tool was rejected.')));
      hooks.report(iteration, { ...after, result });
      return { index, toolUse, result, ms, finalAnswer: false, stop: false };
    }),
  );
};
