import { timer } from 'rxjs';
import type { ContentBlock, ToolResultBlock, ToolCallBlock } from '../values/message.js';
import { freezeResult, frozen } from '../values/message.js';
import type { Extras, ToolOutput } from '../values/tool-output.js';
import { cutObservation, errorIn, failedOutput, rejectedResult } from '../values/tool-output.js';
import type { ToolDecision } from './authorize-tool-call.js';
import { answered, authorize, interruptedText } from './authorize-tool-call.js';
import { MillraceError } from '../values/errors.js';
import type { LoopCall } from '../seams/call.js';
import { holding, perform } from '../seams/steps.js';
import type { Context } from '../seams/layer.js';
import { withError } from '../events.js';
import { andThen, type Eventual } from '../flow/eventual.js';
import { type OpenRun, progress } from '../run.js';
import { defined } from '../values/json.js';
import { createToolRun, earlierToolCalls, type PendingRun, type RunOutcome } from './run-tool.js';
import { type CostBelow, costOf } from '../seams/spending.js';
import type { Cut } from '../step.js';
import type { PlannedCall, AskedCall } from '../tools/batch.js';

export interface ToolCallResult extends CostBelow {
  readonly index: number;
  /** The tool call as it ran, with the edits of interceptors. */
  readonly toolCall: ToolCallBlock;
  readonly result: ToolResultBlock;
  readonly ms: number;
  readonly executed: boolean;
  /** Whether it failed, or could not start because of the model's arguments. */
  readonly failed: boolean;
  /** Values for later tools, hidden from the model. */
  readonly extras: Extras;
  /** The complete content, if it is the answer. */
  readonly finalAnswer: readonly ContentBlock[] | undefined;
  readonly stop: boolean;
}

/**
 * Answers a tool call in two steps, the decision and the run. Emits one result, and one `preActing` and `postActing`
 * event. `known` answers it without running the tool.
 */
export const callTool = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  known?: ToolResultBlock,
): Eventual<ToolCallResult> => {
  const id = `${run.iteration}/${plan.index}/intent`;
  const step = intentStep(context, call, run, plan, known);
  const decided = perform(context, { kind: 'intent', id, input: plan.toolCall, ...step });
  return andThen(decided, (decision) => runTool(context, call, run, plan, decision));
};

/** Runs a tool as decided, in a step. */
export const runTool = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  decision: ToolDecision,
): Eventual<ToolCallResult> => {
  const id = `${run.iteration}/${plan.index}`;
  const { isReported, ...step } = toolStep(context, call, run, plan, decision);
  const ran = perform(context, { kind: 'tool', id, input: decision.toolCall, ...step });
  return andThen(ran, (given) => {
    const outcome = sameUse(given, plan);
    const { toolCall, result, ms } = outcome;
    context.local(progress).acting?.results.push(result);
    // A layer, such as a cache, answered it.
    if (!isReported() && context.local(earlierToolCalls).wasReported?.(id) !== true) {
      context.hooks.report(run.iteration, { type: 'postActing', toolCall, result, ms });
    }
    return outcome;
  });
};

const sameUse = (
  outcome: ToolCallResult,
  { index, toolCall: { id } }: PlannedCall,
): ToolCallResult =>
  outcome.result.toolCallId === id
    ? outcome
    : {
        ...outcome,
        index,
        toolCall: { ...outcome.toolCall, id },
        result: { ...outcome.result, toolCallId: id },
      };

const intentStep = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  known: ToolResultBlock | undefined,
) => {
  const { hooks } = context;
  let isAnnounced = false;
  let latest = plan.toolCall;
  const announce = (toolCall: ToolCallBlock): void => {
    if (isAnnounced) return;
    isAnnounced = true;
    hooks.report(run.iteration, { type: 'preActing', toolCall: frozen(toolCall) });
  };
  return {
    work: (): Eventual<ToolDecision> =>
      authorize(context, call, run, plan, {
        announce,
        onInput: (toolCall) => {
          latest = toolCall;
        },
        refused: refusal(run, plan) ?? known,
      }),
    cut: ({ message }: Cut): ToolDecision => {
      if (isAnnounced)
        return { ...answered(latest, failedOutput(message ?? interruptedText)), failed: true };
      announce(latest);
      return answered(latest, failedOutput(message ?? 'Not run: the call was interrupted.'));
    },
  };
};

const refusal = ({ stopping }: OpenRun, { refusal: why }: PlannedCall): ToolOutput | undefined => {
  if (stopping) return failedOutput('Not run: the call was stopped.');
  return why === undefined ? undefined : failedOutput(why);
};

/** The work of a tool step, and its cut: runs the tool as decided, then the `postActing` interceptors. */
const toolStep = (
  context: Context,
  call: LoopCall,
  run: OpenRun,
  plan: PlannedCall,
  decision: ToolDecision,
) => {
  const { scheduler } = context;
  const position = `${run.iteration}/${plan.index}`;
  let startedAt = scheduler.now();
  let running: PendingRun | undefined;
  let ran: RunOutcome | undefined;
  let isReported = false;
  const afterRun = (given: RunOutcome): Eventual<ToolCallResult> => {
    ran = given;
    isReported = true;
    const ms = scheduler.now() - startedAt;
    const failures = given.failed ? failuresInRow(run.uses, plan.toolCall.name) : 0;
    const note = warnAndNote(context, call, run, plan, failures);
    // Repeated failures of a tool are reported with a growing delay.
    const backoff = given.executed ? failures * call.limits.toolBackoffMs : 0;
    const outcome = (): Eventual<ToolCallResult> =>
      holding(context, position, () =>
        reviewed(context, call, run, given, { index: plan.index, ms }, note),
      );
    return backoff === 0 ? outcome() : andThen(timer(backoff, scheduler), outcome);
  };
  return {
    isReported: () => isReported,
    work: (): Eventual<ToolCallResult> => {
      if (ran !== undefined) throw runAgain(position);
      startedAt = scheduler.now();
      running = createToolRun(context, call, run, decision, plan);
      return andThen(running.work(), afterRun);
    },
    cut: ({ message = interruptedText }: Cut): Eventual<ToolCallResult> => {
      isReported = true;
      const given = ran ?? running?.cutAs(message) ?? notBegun(decision, message);
      const ms = scheduler.now() - startedAt;
      // No backoff: the model will not be asked again.
      return reviewed(context, call, run, given, { index: plan.index, ms }, '');
    },
  };
};

const runAgain = (position: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `A layer ran the step '${position}' again after its tool had returned a result. Retry within the tool.`,
  );

/** The outcome of a tool call cut before it started, equal to one cut later: a record cannot distinguish them. */
const notBegun = (decision: ToolDecision, why: string): RunOutcome => ({
  toolCall: decision.toolCall,
  output: decision.answer ?? failedOutput(why),
  executed: decision.answer === undefined,
  failed: decision.answer === undefined || decision.failed,
  ...costOf(decision),
});

const warnAndNote = (
  { hooks }: Context,
  { limits }: LoopCall,
  { iteration }: OpenRun,
  { toolCall: { name }, repeats, refusal: refused }: PlannedCall,
  failures: number,
): string => {
  const warn = (message: string): void => hooks.report(iteration, { type: 'warning', message });
  const isAgain = repeats > 0 && refused === undefined;
  const isHopeless = failures > limits.maxToolErrors;
  if (isAgain && repeats > 1) {
    warn(
      `The model called the tool '${name}' with the same arguments ${repeats + 1} times in a row.`,
    );
  }
  if (isHopeless) warn(`The tool '${name}' has failed ${failures} times in a row.`);
  return [
    ...(isAgain ? [sameAgain(name, repeats)] : []),
    ...(isHopeless ? [tooManyFailures(name, failures)] : []),
  ].join('\n');
};

const reviewed = (
  { hooks }: Context,
  { limits }: LoopCall,
  { iteration }: OpenRun,
  { toolCall, output, executed, failed, usage, below }: RunOutcome,
  at: Pick<ToolCallResult, 'index' | 'ms'>,
  note: string,
): Eventual<ToolCallResult> => {
  const given = resultOf(toolCall, output, note);
  const after = { type: 'postActing', toolCall, result: given, ms: at.ms } as const;
  const error = errorIn(output);
  const payload = withError(
    output.finalAnswer === true ? { ...after, finalAnswer: true } : after,
    error,
  );
  const ran = { toolCall, executed, failed, usage, ...at, ...(below && { below }) };
  return hooks.emit(iteration, payload, (event): ToolCallResult => {
    if (event === undefined) {
      const result = rejectedResult(toolCall.id);
      hooks.report(iteration, withError({ ...after, result }, error));
      return { result, extras: {}, finalAnswer: undefined, stop: false, ...ran };
    }
    const { content, isError, suspended: later } = event.result;
    if (later && !later.below) {
      const { from } = later;
      const request = frozen(later.request);
      hooks.report(iteration, { type: 'suspended', toolCall, request, from });
    }
    const shown = cutObservation(content, limits.maxObservation);
    const isAsGiven = event.result === given && shown === content;
    return {
      result: isAsGiven
        ? given
        : freezeResult({ ...event.result, toolCallId: toolCall.id, content: shown }),
      extras: output.extras ?? {},
      finalAnswer: event.finalAnswer === true && !isError ? content : undefined,
      stop: event.stop === true,
      ...ran,
    };
  });
};

const resultOf = (
  { id }: ToolCallBlock,
  { content, isError, details, suspended }: ToolOutput,
  note: string,
): ToolResultBlock => ({
  type: 'tool_result',
  toolCallId: id,
  content,
  isError,
  ...(note === '' ? {} : { note }),
  ...defined({ details, suspended }),
});

/** Counts this failure, too, which is not among the uses yet. */
const failuresInRow = (uses: readonly AskedCall[], name: string): number => {
  const own = uses.filter(({ toolCall }) => toolCall.name === name);
  return own.length - own.findLastIndex(({ failed }) => !failed);
};

const tooManyFailures = (name: string, failures: number): string =>
  `The tool ${name} has failed ${failures} times in a row. Do not call it again: continue without it, or say what is missing.`;

const sameAgain = (name: string, repeats: number): string =>
  `You have called ${name} with the same arguments ${repeats + 1} times in a row. Use its result, or call something else.`;
