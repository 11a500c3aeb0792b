import { freeze } from 'immer';
import { concatMap, defaultIfEmpty, map, type Observable, of, takeUntil, tap } from 'rxjs';
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

interface Begun {
  readonly toolUse: ToolUseBlock;
  /** Why it is answered without being run. */
  readonly refusal: ToolOutput | undefined;
}

interface Done {
  readonly toolUse: ToolUseBlock;
  readonly output: ToolOutput;
  readonly ms: number;
}

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
  context.step$(`${run.iteration}/${index}`, () =>
    begin$(context, run, asked).pipe(
      concatMap((begun) => perform$(context, run, begun)),
      concatMap((done) => finish$(context, run, done)),
      map((acted) => ({ ...acted, index })),
    ),
  );

const begin$ = (
  { hooks, interruption }: Needs,
  { iteration, stopping }: OpenRun,
  asked: ToolUseBlock,
): Observable<Begun> => {
  const refusal = (vetoed: boolean): ToolOutput | undefined => {
    if (interruption.current !== undefined)
      return failedOutput('Not run: the call was interrupted.');
    if (vetoed) return failedOutput('Not run: this use of the tool was rejected.');
    return stopping ? failedOutput('Not run: the call was stopped.') : undefined;
  };
  return hooks.intercepted$(iteration, { type: 'preActing', toolUse: asked }).pipe(
    takeUntil(interruption.cut$),
    map(({ toolUse }) => ({
      toolUse: freeze({ ...toolUse, id: asked.id }, true),
      refusal: refusal(false),
    })),
    defaultIfEmpty(undefined),
    map((begun) => begun ?? { toolUse: asked, refusal: refusal(true) }),
    tap(({ toolUse }) => hooks.report(iteration, { type: 'preActing', toolUse })),
  );
};

const perform$ = (context: Needs, run: OpenRun, begun: Begun): Observable<Done> => {
  const { toolUse, refusal } = begun;
  const { scheduler } = context;
  const startedAt = scheduler.now();
  const output$ = refusal === undefined ? runTool$(context, run, toolUse) : of(refusal);
  return output$.pipe(map((output) => ({ toolUse, output, ms: scheduler.now() - startedAt })));
};

const finish$ = (
  { hooks, limits }: Needs,
  { iteration }: OpenRun,
  { toolUse, output, ms }: Done,
): Observable<Omit<Acted, 'index'>> => {
  const { finalAnswer = false, ...rest } = output;
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
  const after = { type: 'postActing', toolUse, result: resultOf(rest), ms } as const;
  return hooks.emit$(iteration, finalAnswer ? { ...after, finalAnswer } : after).pipe(
    map((event) => ({
      toolUse,
      result: cut({ ...event.result, toolUseId: toolUse.id }),
      ms,
      finalAnswer: event.finalAnswer === true && !event.result.isError,
      stop: event.stop === true,
    })),
    defaultIfEmpty(undefined),
    map((acted) => {
      if (acted !== undefined) return acted;
      const result = freezeResult(resultOf(failedOutput('The result of this tool was rejected.')));
      hooks.report(iteration, { ...after, result });
      return { toolUse, result, ms, finalAnswer: false, stop: false };
    }),
  );
};
