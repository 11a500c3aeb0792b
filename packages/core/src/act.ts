import { concatMap, defaultIfEmpty, map, type Observable, of, takeUntil } from 'rxjs';
import { frozen } from './frozen.js';
import { cutObservation } from './cut-observation.js';
import { freezeResult } from './freeze-message.js';
import { heldBack } from './held-back.js';
import type { ContentBlock, ToolResultBlock, ToolUseBlock } from './message.js';
import type { Context } from './context.js';
import type { OpenRun } from './run.js';
import { runTool$ } from './run-tool.js';
import { failedOutput, type ToolOutput } from './tool-output.js';
import type { Planned } from './tools/batch.js';
import type { Extras } from './tools/extras.js';
import { failuresInRow, noted, sameAgain, tooManyFailures } from './tools/notes.js';

/** One tool use, answered. */
export interface Acted {
  /** Its place in the message that asked for it. */
  readonly index: number;
  /** As it was run, with the edits of interceptors. */
  readonly toolUse: ToolUseBlock;
  readonly result: ToolResultBlock;
  readonly ms: number;
  /** Whether the tool was asked at all. */
  readonly executed: boolean;
  /** What the tool passes on to others, past the model. */
  readonly extras: Extras;
  /** All that the tool gave, where it is the answer. */
  readonly finalAnswer: readonly ContentBlock[] | undefined;
  readonly stop: boolean;
}

type Needs = Parameters<typeof runTool$>[0] & Pick<Context, 'call' | 'limits' | 'step$'>;

/**
 * Answers one tool use: interceptors before, look-up, validation, approval, the run itself, interceptors after, the cut.
 * Whatever happens, it emits one result, and makes one `preActing` and one `postActing` event. `known` is what answers it without a run.
 */
export const act$ = (
  context: Needs,
  run: OpenRun,
  plan: Planned,
  known?: ToolResultBlock,
): Observable<Acted> =>
  context.step$(`${run.iteration}/${plan.index}`, () => {
    const { hooks, interruption } = context;
    const asked = plan.toolUse;
    return hooks.intercepted$(run.iteration, { type: 'preActing', toolUse: asked }).pipe(
      takeUntil(interruption.cut$),
      defaultIfEmpty(undefined),
      concatMap((before) => {
        const toolUse = before === undefined ? asked : edited(asked, before.toolUse);
        hooks.report(run.iteration, { type: 'preActing', toolUse });
        const refused = refusal(context, run, plan, before === undefined) ?? known;
        return perform$(context, run, plan, toolUse, refused);
      }),
    );
  });

/** As an interceptor has made it: it is still the same use, and an input that it was given is one. */
const edited = (asked: ToolUseBlock, { invalidInput, ...made }: ToolUseBlock): ToolUseBlock => {
  const isBroken = invalidInput !== undefined && made.input === asked.input;
  return frozen({ ...made, id: asked.id, ...(isBroken && { invalidInput }) });
};

/** Why a tool use is answered without being run. */
const refusal = (
  { interruption }: Needs,
  { stopping }: OpenRun,
  { refusal: why }: Planned,
  vetoed: boolean,
): ToolOutput | undefined => {
  if (interruption.current !== undefined) return failedOutput('Not run: the call was interrupted.');
  if (vetoed) return failedOutput('Not run: this use of the tool was rejected.');
  if (stopping) return failedOutput('Not run: the call was stopped.');
  return why === undefined ? undefined : failedOutput(why);
};

const perform$ = (
  context: Needs,
  run: OpenRun,
  plan: Planned,
  toolUse: ToolUseBlock,
  known: ToolOutput | undefined,
): Observable<Acted> => {
  const { scheduler } = context;
  const startedAt = scheduler.now();
  const ran$ =
    known === undefined
      ? runTool$(context, run, toolUse, plan)
      : of({ toolUse, output: known, executed: false });
  return ran$.pipe(
    concatMap((ran) => {
      const ms = scheduler.now() - startedAt;
      const failures = ran.output.isError ? failuresInRow(run.toolRuns, toolUse.name) : 0;
      // The answer is for the user, who is not to read what a model is told.
      const notes = ran.output.finalAnswer === true ? [] : notesOn(context, run, plan, failures);
      const output = noted(ran.output, notes);
      const finished$ = finish$(context, run, { ...ran, index: plan.index, ms }, output);
      // The longer a tool fails, the longer the model waits for the news of it.
      const backoff = ran.executed ? failures * context.limits.toolBackoffMs : 0;
      return finished$.pipe(heldBack(backoff, context));
    }),
  );
};

/** What the model should know of this use beside its result. */
const notesOn = (
  { hooks, limits }: Needs,
  { iteration }: OpenRun,
  { toolUse: { name }, repeats, refusal: refused }: Planned,
  failures: number,
): readonly string[] => {
  const again = repeats > 0 && refused === undefined ? [sameAgain(name, repeats)] : [];
  if (repeats > 1) {
    const message = `The model has asked for the tool '${name}' with the same arguments ${repeats + 1} times in a row.`;
    hooks.report(iteration, { type: 'warning', message });
  }
  return failures > limits.maxToolErrors ? [...again, tooManyFailures(name, failures)] : again;
};

const finish$ = (
  { hooks, limits }: Needs,
  { iteration }: OpenRun,
  { index, toolUse, ms, executed }: Pick<Acted, 'index' | 'toolUse' | 'ms' | 'executed'>,
  output: ToolOutput,
): Observable<Acted> => {
  const { finalAnswer = false, extras = {} } = output;
  const resultOf = ({ content, isError, details, suspended }: ToolOutput): ToolResultBlock => ({
    type: 'tool_result',
    toolUseId: toolUse.id,
    content,
    isError,
    ...(details === undefined ? {} : { details }),
    ...(suspended === undefined ? {} : { suspended }),
  });
  const cut = (result: ToolResultBlock): ToolResultBlock =>
    freezeResult({
      ...result,
      content: cutObservation(result.content, limits.maxObservation),
    });
  const after = { type: 'postActing', toolUse, result: resultOf(output), ms } as const;
  const acted = { index, toolUse, ms, executed };
  return hooks.emit$(iteration, finalAnswer ? { ...after, finalAnswer } : after).pipe(
    defaultIfEmpty(undefined),
    map((event) => {
      if (event !== undefined) {
        const { suspended } = event.result;
        if (suspended !== undefined) {
          hooks.report(iteration, { type: 'suspended', toolUse, request: suspended.request });
        }
        return {
          ...acted,
          result: cut({ ...event.result, toolUseId: toolUse.id }),
          extras,
          finalAnswer:
            event.finalAnswer === true && !event.result.isError ? event.result.content : undefined,
          stop: event.stop === true,
        };
      }
      const result = freezeResult(resultOf(failedOutput('The result of this tool was rejected.')));
      hooks.report(iteration, { ...after, result });
      return { ...acted, result, extras: {}, finalAnswer: undefined, stop: false };
    }),
  );
};
