import type { Context } from '../seams/layer.js';
import type { LoopCall } from '../seams/call.js';
import type { OpenRun } from '../run.js';
import type { RunOutcome } from './run-tool.js';
import type { Eventual } from '../flow/eventual.js';
import {
  errorIn,
  rejectedResult,
  cutObservation,
  type ToolOutput,
  type Extras,
} from '../values/tool-output.js';
import { withError } from '../events.js';
import {
  frozen,
  freezeResult,
  type ToolCallBlock,
  type ToolResultBlock,
  type ContentBlock,
} from '../values/message.js';
import { defined } from '../values/json.js';
import type { PlannedCall, AskedCall } from '../tools/batch.js';
import type { CostBelow } from '../seams/spending.js';

export const reviewedResult = (
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
    // The sub-agent has reported its own.
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

export const warnAndNote = (
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

/** Counts this failure, too, which is not among the uses yet. */
export const failuresInRow = (asked: readonly AskedCall[], name: string): number => {
  const own = asked.filter(({ toolCall }) => toolCall.name === name);
  return own.length - own.findLastIndex(({ failed }) => !failed);
};

const tooManyFailures = (name: string, failures: number): string =>
  `The tool ${name} has failed ${failures} times in a row. Do not call it again: continue without it, or say what is missing.`;

const sameAgain = (name: string, repeats: number): string =>
  `You have called ${name} with the same arguments ${repeats + 1} times in a row. Use its result, or call something else.`;

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
