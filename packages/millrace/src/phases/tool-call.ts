import { timer } from 'rxjs';
import type { ToolResultBlock, ToolCallBlock } from '../values/message.js';
import { frozen } from '../values/message.js';
import type { ToolOutput } from '../values/tool-output.js';
import { failedOutput } from '../values/tool-output.js';
import type { ToolDecision } from './authorize-tool-call.js';
import { answered, authorize, interruptedText } from './authorize-tool-call.js';
import { MillraceError } from '../values/errors.js';
import type { LoopCall } from '../seams/call.js';
import { holding, perform } from '../seams/steps.js';
import type { Context } from '../seams/layer.js';
import { andThen, type Eventual } from '../flow/eventual.js';
import type { OpenRun } from '../run.js';
import { createToolRun, earlierToolCalls, type PendingRun, type RunOutcome } from './run-tool.js';
import { costOf } from '../seams/spending.js';
import type { Cut } from '../step.js';
import type { PlannedCall } from '../tools/batch.js';
import { loopProgress } from '../seams/progress.js';
import {
  reviewedResult,
  warnAndNote,
  failuresInRow,
  type ToolCallResult,
} from './review-result.js';

/**
 * Answers a tool call in two steps: `intent` decides whether the tool runs, and with which input; `tool` runs it. Emits one result, and one
 * `preActing` and `postActing` event. `known` answers it without running the tool.
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
    const outcome = forPlan(given, plan);
    const { toolCall, result, ms } = outcome;
    context.local(loopProgress).acting?.results.push(result);
    // If a layer, such as a cache, answered in place of the step, nothing has been reported: neither now nor before a resume.
    if (!isReported() && context.local(earlierToolCalls).wasReported?.(id) !== true) {
      context.hooks.report(run.iteration, { type: 'postActing', toolCall, result, ms });
    }
    return outcome;
  });
};

/** A result that a layer, such as a cache, took from another tool call gets the id and the place of this one. */
const forPlan = (
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
        answer: refusal(run, plan) ?? known,
      }),
    cut: ({ message }: Cut): ToolDecision => {
      // Observers have seen it begin, so it counts as a failure. Otherwise it is announced now, as one that did not run.
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
    const failures = given.failed ? failuresInRow(run.asked, plan.toolCall.name) : 0;
    const note = warnAndNote(context, call, run, plan, failures);
    // The model learns of a failure after a delay that grows with those in a row, this one included.
    const backoff = given.executed ? failures * call.limits.toolBackoffMs : 0;
    const outcome = (): Eventual<ToolCallResult> =>
      holding(context, position, () =>
        reviewedResult(context, call, run, given, { index: plan.index, ms }, note),
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
      return reviewedResult(context, call, run, given, { index: plan.index, ms }, '');
    },
  };
};

const runAgain = (position: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `A layer ran the step '${position}' again after its tool had returned a result. Retry within the tool.`,
  );

/** The outcome of a tool call that was cut before it began. After a resume, no one knows whether it had begun: so it always counts as one that ran. */
const notBegun = (decision: ToolDecision, why: string): RunOutcome => ({
  toolCall: decision.toolCall,
  output: decision.answer ?? failedOutput(why),
  executed: decision.answer === undefined,
  failed: decision.answer === undefined || decision.failed,
  ...costOf(decision),
});
