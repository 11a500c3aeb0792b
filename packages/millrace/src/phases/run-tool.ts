import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { catchError, concatMap, EMPTY, identity, isObservable, of, retry, timer } from 'rxjs';
import { LazyAbort } from '../flow/lazy-abort.js';
import { andThen, type Eventual, deferWork } from '../flow/eventual.js';
import type { LoopCall } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import { timeLimit } from '../flow/deadline.js';
import { gather, type Supervision } from '../flow/gather.js';
import type { ToolDecision } from './authorize-tool-call.js';
import { checkInput, failedBy, timeoutOf } from './check-tool-call.js';
import { isFatal, isMillraceError, messageOf, MillraceError } from '../values/errors.js';
import { isSameJson } from '../values/json.js';
import { copied, type ToolCallBlock } from '../values/message.js';
import { outputBelow, spentBelow, startTool, toolContext } from '../seams/tool-context.js';
import type { OpenRun } from '../run.js';
import { cell } from '../step.js';
import { addCost, type CostBelow, costOf } from '../seams/spending.js';
import type { ToolEmission, ToolOutput } from '../values/tool-output.js';
import { failedOutput, lostIn, toOutput } from '../values/tool-output.js';
import type { PlannedCall } from '../tools/batch.js';
import type { Tool, ToolContext, ToolRetry } from '../tools/types.js';

export interface RunOutcome extends CostBelow {
  /** The tool call as it ran, with the edits of deciders. */
  readonly toolCall: ToolCallBlock;
  readonly output: ToolOutput;
  readonly executed: boolean;
  /** Whether it failed, or could not start because of the model's arguments. A denied tool call has not failed. */
  readonly failed: boolean;
}

interface EarlierOutcome extends Pick<RunOutcome, 'output' | 'failed'> {
  /** The output after its check, if a client has brought it. */
  readonly checked$?: Observable<ToolOutput>;
}

/** The tool calls of an earlier process, by the positions of their steps. */
export interface EarlierToolCalls {
  /** The outcome of a tool call that was running when that process ended; `undefined` runs the tool. */
  readonly outcomeOf: (
    stepId: string,
    toolCall: ToolCallBlock,
    call: LoopCall,
  ) => EarlierOutcome | undefined;
  /** The text for the model if such a tool call cannot run again, with the reason. */
  readonly refusalOf: (stepId: string, why: string) => string;
  /** Whether the process reported the result. */
  readonly wasReported: (stepId: string) => boolean;
}

/** Set by the layer that knows it; empty without one. */
export const earlierToolCalls = cell('call', (): Partial<EarlierToolCalls> => ({}));

export interface PendingRun {
  /** Runs the tool. Returns one outcome and never fails, except fatally: problems are reported to the model. */
  readonly work: () => Eventual<RunOutcome>;
  /** The outcome if it is cut now, with the reason for the model. */
  readonly cutAs: (why: string) => RunOutcome;
}

export const settledRun = (
  decision: ToolDecision,
  output: ToolOutput,
  { executed, failed }: Pick<RunOutcome, 'executed' | 'failed'>,
): PendingRun => {
  const ran = { toolCall: decision.toolCall, output, executed, failed, ...costOf(decision) };
  return { work: () => ran, cutAs: () => ran };
};

const earlierRun = (
  decision: ToolDecision,
  { output, failed, checked$ }: EarlierOutcome,
): PendingRun => {
  const settled = settledRun(decision, output, { executed: true, failed });
  if (checked$ === undefined) return settled;
  const checkedRun = (checked: ToolOutput): Eventual<RunOutcome> =>
    settledRun(decision, checked, { executed: true, failed: checked.isError }).work();
  return { ...settled, work: () => andThen(checked$, checkedRun) };
};

export const createToolRun = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  decision: ToolDecision,
  plan: PlannedCall,
): PendingRun => {
  const { toolkit, limits } = call;
  const { toolCall, answer, failed } = decision;
  const { name } = toolCall;
  if (answer !== undefined) return settledRun(decision, answer, { executed: false, failed });
  const stepId = `${run.iteration}/${plan.index}`;
  const { outcomeOf, refusalOf } = context.local(earlierToolCalls);
  const earlier = outcomeOf?.(stepId, toolCall, call);
  if (earlier !== undefined) return earlierRun(decision, earlier);
  const tool = toolkit.current.find(name);
  if (tool === undefined || !isAsSeen(tool, plan)) {
    return settledRun(decision, gone(name, tool), { executed: true, failed: true });
  }
  const abort = new LazyAbort();
  const unmarked = tool.callsAgents === true ? undefined : name;
  const lent = toolContext(
    context,
    call,
    { toolCallId: toolCall.id, stepId, unmarked },
    run,
    abort,
  );
  let failure: unknown;
  const failedInterceptor = (error: unknown): never => {
    failure = error;
    throw error;
  };
  const ranTo = (output: ToolOutput): RunOutcome => ({
    toolCall,
    output,
    executed: true,
    failed: output.isError,
    ...addCost(decision, spentBelow(lent)),
  });
  const emissions = (): Eventual<ToolEmission> =>
    'value' in decision
      ? emissionsOf(context, call, run, tool, decision, lent, failedInterceptor)
      : // The value is not recorded: the input is read again.
        andThen(checkInput(context, call, tool, toolCall, plan), (checked) =>
          checked.status === 'refused'
            ? ended(failedOutput(refusalOf?.(stepId, checked.why) ?? checked.why))
            : emissionsOf(context, call, run, tool, checked, lent, failedInterceptor),
        );
  const ranAbove = (output: ToolOutput): RunOutcome => ranTo(outputBelow(lent) ?? output);
  const supervision: Supervision<RunOutcome> = {
    abort,
    limit: timeLimit(timeoutOf(tool, limits.timeouts), context.scheduler, `The tool '${name}'`),
    handle: (error) => {
      abort.abort();
      // Fatal errors: the result of a tool that stopped with its call must not be recorded.
      if (isFatal(error) || (error !== undefined && error === failure)) throw error;
      return ranAbove(failedBy(name, error));
    },
  };
  const last = lastOutput(context, run, toolCall);
  return {
    work: () => gather(emissions, { ...last, finish: ranAbove }, supervision),
    cutAs: (why) => ranTo(failedOutput(why)),
  };
};

/** The last output of a tool; progress is reported. */
const lastOutput = ({ hooks }: Context, { iteration }: OpenRun, toolCall: ToolCallBlock) => ({
  seed: toOutput(undefined),
  add: (last: ToolOutput, emission: ToolEmission): ToolOutput => {
    if (emission.type !== 'output') {
      hooks.report(iteration, progressOf(toolCall, emission.value));
      return last;
    }
    const lost = lostIn(emission.output);
    if (lost.length > 0) {
      const message = `The output of the tool '${toolCall.name}' has values that JSON cannot express: ${lost.slice(0, 10).join(', ')}.`;
      hooks.report(iteration, { type: 'warning', message });
    }
    return emission.output;
  },
});

const ended = (output: ToolOutput): ToolEmission => ({ type: 'output', output });

const progressOf = (toolCall: ToolCallBlock, value: unknown) =>
  ({ type: 'actingChunk', toolCall, value }) as const;

/** The emissions of a tool. Each attempt gets a fresh copy of the input. */
const emissionsOf = (
  context: Context,
  { toolkit }: LoopCall,
  { iteration }: OpenRun,
  tool: Tool,
  { toolCall, value }: Pick<ToolDecision, 'toolCall' | 'value'>,
  lent: ToolContext,
  onInterceptorError: (error: unknown) => never,
): Eventual<ToolEmission> => {
  const { hooks, scheduler } = context;
  const { name, retry: policy } = tool;
  const runOnce = (): Eventual<ToolEmission> => {
    // It may have been removed or replaced between two attempts.
    const current = toolkit.current.find(name);
    if (current === undefined || !isSameTool(current, tool)) {
      return ended(gone(name, current, ' again'));
    }
    const given = policy === undefined ? value : copied(value);
    return startTool(lent, () => current.run$(given, lent));
  };
  const emitted = policy === undefined ? runOnce() : deferWork(runOnce);
  if (!isObservable(emitted)) return emitted;
  return emitted.pipe(
    policy === undefined
      ? identity
      : retryTransient(policy, scheduler, (error, attempt, attempts, ms) => {
          const message = `The tool '${name}' runs again in ${ms} ms: attempt ${attempt} of ${attempts} failed. ${messageOf(error)}`;
          hooks.report(iteration, { type: 'warning', message });
        }),
    hooks.intercepts('actingChunk')
      ? concatMap((emission) =>
          emission.type === 'output'
            ? of(emission)
            : deferWork(() =>
                hooks.emit(iteration, progressOf(toolCall, emission.value), () => EMPTY),
              ).pipe(catchError(onInterceptorError)),
        )
      : identity,
  );
};

/** Whether this is the tool that the model and the approvers have seen. An interceptor may have chosen one of another name. */
const isAsSeen = (tool: Tool, { toolCall, tool: seen }: PlannedCall): boolean =>
  tool.name !== toolCall.name || isSameTool(tool, seen);

/** Whether two tools are one for the model and for approvers: it may have been made again, such as for a new connection. */
const isSameTool = (one: Tool, other: Tool | undefined): boolean =>
  one === other || isSameJson(seenOf(one), other && seenOf(other));

const seenOf = ({ description, inputSchema, outputSchema, deciders = [] }: Tool): object => ({
  description,
  inputSchema,
  outputSchema,
  deciders: deciders.length,
});

const gone = (name: string, other: Tool | undefined, again = ''): ToolOutput =>
  failedOutput(
    `Not run${again}: the tool ${name} ${other === undefined ? 'no longer exists' : 'has been replaced. Call the new one if you still need it'}.`,
  );

/** Marks an error as transient, for the `retry` of a tool. Pass the original error or a message. */
export const transient = (cause: unknown): MillraceError =>
  new MillraceError('tool', messageOf(cause), { cause, retryable: true });

/** Retries after errors marked with `transient`. Calls `onRetry` before the delay. */
const retryTransient = <T>(
  { attempts = 3, backoffMs = 800, growth = 'linear' }: ToolRetry,
  scheduler: SchedulerLike,
  onRetry: (error: unknown, attempt: number, attempts: number, ms: number) => void,
): MonoTypeOperatorFunction<T> =>
  retry({
    delay: (error: unknown, attempt) => {
      const isMarked = isMillraceError(error) && error.code === 'tool' && error.retryable;
      if (!isMarked || attempt >= attempts) throw error;
      const ms = backoffMs * (growth === 'linear' ? attempt : 2 ** (attempt - 1));
      onRetry(error, attempt, attempts, ms);
      return timer(ms, scheduler);
    },
  });
