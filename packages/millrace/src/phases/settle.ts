import { type OpenRun, type Run, spend, answerTools, end } from '../run.js';
import {
  type AssistantMessage,
  type ToolMessage,
  textOf,
  type Suspension,
  type ToolResultBlock,
  textBlock,
} from '../values/message.js';
import type { PlannedCall, AskedCall } from '../tools/batch.js';
import { type Extras, toToolRun } from '../values/tool-output.js';
import type { Context } from '../seams/layer.js';
import type { LoopCall } from '../seams/call.js';
import { addUsage, noUsage, tokensIn } from '../values/usage.js';
import { noMemory } from '../values/memory.js';
import { assistantMessage, textOnly } from './limit.js';
import type { ToolCallResult } from './review-result.js';

/** The run with the results of its tool calls. A tool that waits, that has the answer, or that stops, ends it. */
export const settle = (
  run: OpenRun,
  message: AssistantMessage,
  plans: readonly PlannedCall[],
  given: readonly ToolCallResult[],
  extras: Extras,
  { info, hooks, interruption }: Context,
  { memory }: LoopCall,
): Run => {
  const isCut = interruption.current !== undefined;
  const results = isCut ? given.map((it) => ({ ...it, result: asInterrupted(it.result) })) : given;
  const toolCalls = new Map(results.map(({ toolCall }) => [toolCall.id, toolCall]));
  const content = message.content.map((block) =>
    block.type === 'tool_call' ? (toolCalls.get(block.id) ?? block) : block,
  );
  const toolMessage: ToolMessage = {
    id: `${message.id}/results`,
    role: 'tool',
    content: results.map(({ result }) => result),
  };
  const costBelow = results.reduce((all, { usage }) => addUsage(all, usage), noUsage);
  const spent = tokensIn(costBelow) === 0 ? run : spend(run, costBelow, 'acting');
  const answered = answerTools(spent, { ...message, content }, toolMessage, {
    toolRuns: results.map(toToolRun),
    asked: results.map((it, index) => asAsked(it, plans[index])).filter((it) => it !== undefined),
    executed: results.filter(({ executed }) => executed).length,
    extras: results.reduce((all, { extras: added }) => ({ ...all, ...added }), extras),
  });
  const suspensions = isCut ? [] : results.flatMap(suspensionsOf);
  if (suspensions.length > 0) {
    const warn = (warning: string): void =>
      hooks.report(run.iteration, { type: 'warning', message: warning });
    if (memory === noMemory) warn(lost);
    const names = Object.keys(answered.extras);
    if (names.length > 0) warn(extrasLost(names));
    const answer = assistantMessage(info, `${run.iteration}/suspended`, []);
    return { ...end(answered, 'suspended', answer), suspensions };
  }
  const final = results.find(({ finalAnswer }) => finalAnswer !== undefined)?.finalAnswer;
  if (final !== undefined) {
    return end(answered, 'toolFinal', assistantMessage(info, `${run.iteration}/final`, final));
  }
  if (!run.stopping && !results.some(({ stop }) => stop)) return answered;
  return textOf(message) === ''
    ? end(answered, 'stopped', assistantMessage(info, `${run.iteration}/stopped`, 'Stopped.'))
    : end(answered, 'stopped', textOnly(message));
};

export const suspensionsOf = ({
  toolCall,
  result: { suspended: later },
}: Pick<ToolCallResult, 'toolCall' | 'result'>): readonly Suspension[] => {
  if (later === undefined) return [];
  const { below, ...own } = later;
  // Stored data may lack it, or have another value: then it is for the program.
  const from = own.from === 'client' ? own.from : 'program';
  return below?.waiting ?? [{ toolCall, ...own, from }];
};

/** A tool call as the model asked for it, with what later ones need to know of it. */
const asAsked = (
  { toolCall, result, failed, executed, extras }: ToolCallResult,
  plan: PlannedCall | undefined,
): AskedCall | undefined => {
  if (plan === undefined) return undefined;
  const isWhole = executed && !result.isError && result.suspended === undefined;
  const isItself = toolCall.name === plan.toolCall.name && Object.keys(extras).length === 0;
  const { repeats } = plan;
  return {
    toolCall: plan.toolCall,
    repeats,
    failed,
    reusable: isWhole && isItself ? plan.tool : undefined,
  };
};

const asInterrupted = ({ suspended, ...result }: ToolResultBlock): ToolResultBlock =>
  suspended === undefined
    ? result
    : { ...result, content: [textBlock('Interrupted before its result arrived.')], isError: true };

/** Extras may not be JSON, and another process may resume the call. */
const extrasLost = (names: readonly string[]): string =>
  `The call waits, so extras that no tool has taken are lost: ${names.join(', ')}.`;

const lost =
  'Only a session can resume this call: sessions(agent).open(id). Below a tool, it also needs journal() and suspendBelow.';
