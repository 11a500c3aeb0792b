import { from, mergeMap, toArray } from 'rxjs';
import { callTool, type ToolCallResult } from './tool-call.js';
import { andThen, type Eventual, observed } from '../flow/eventual.js';
import { createTrampoline, subscribeOnTrampoline } from '../flow/trampoline.js';
import type { LoopCall } from '../seams/call.js';
import type { Context, Phase } from '../seams/layer.js';
import { phase } from '../seams/phase.js';
import {
  type AssistantMessage,
  frozen,
  type ResultSource,
  type Suspension,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  toolCallsOf,
} from '../values/message.js';
import { noMemory } from '../values/memory.js';
import { answerTools, end, type OpenRun, progress, type Run, spend, unanswered } from '../run.js';
import { assistantMessage, textOnly } from './limit.js';
import { type PlannedCall, planBatch, type AskedCall } from '../tools/batch.js';
import { type Extras, toToolRun } from '../values/tool-output.js';
import { addUsage, noUsage, tokensIn } from '../values/usage.js';
import { isRecord } from '../values/json.js';
import { hasInexact } from '../values/exact-json.js';
import { meantName } from '../values/meant-name.js';
import { readJson } from '../values/read-json.js';

/** Extras may not be JSON, and another process may resume the call. */
const extrasLost = (names: readonly string[]): string =>
  `The call waits, so extras that no tool has taken are lost: ${names.join(', ')}.`;

const lost =
  'Only a session can resume this call: sessions(agent).open(id). Below a tool, it also needs journal() and suspendBelow.';

/** Runs the tool calls of the last message, and adds their results in the same order. */
export const acting = (context: Context, call: LoopCall): Phase =>
  phase((run) => {
    const message = unanswered(run);
    if (message === undefined) return run;
    const { parallel, maxToolCalls } = call.limits;
    const latest = context.local(progress);
    latest.acting = { message, results: [] };
    const toolCalls = toolCallsOf(message).map((toolCall) =>
      readable(toolCall, run, context, call),
    );
    const { uses, extras, isLimited } = planBatch(
      run,
      toolCalls,
      call.toolkit.current,
      maxToolCalls,
    );
    if (isLimited) {
      const warning = `The limit of tool calls (${maxToolCalls}) is reached: no more tools are run.`;
      context.hooks.report(run.iteration, { type: 'warning', message: warning });
    }
    const reusing = uses.filter(({ sameAs }) => sameAs !== undefined);
    const batches = allOf(batchesOf(uses), (batch) =>
      allOf(batch, (plan) => callTool(context, call, run, plan), parallel),
    );
    const all = andThen(batches, (made) => {
      const results = made.flat();
      const again = allOf(reusing, (plan) =>
        callTool(context, call, run, plan, reusedResult(plan.sameAs, run, results)),
      );
      return andThen(again, (known) => [...results, ...known]);
    });
    return andThen(all, (results) => {
      results.sort((a, b) => a.index - b.index);
      latest.run = settle(run, message, uses, results, extras, context, call);
      latest.acting = undefined;
      return latest.run;
    });
  });

/** Does work for each item, for up to `parallel` at the same time. For a single item it is a function call. */
const allOf = <T, Out>(
  items: readonly T[],
  work: (item: T) => Eventual<Out>,
  parallel = 1,
): Eventual<readonly Out[]> => {
  const [first] = items;
  if (first === undefined) return [];
  if (items.length === 1) return andThen(work(first), (made) => [made]);
  // Synchronous work would nest: each item waits until the one before has returned.
  const onTrampoline = subscribeOnTrampoline<Out>(createTrampoline());
  return from(items).pipe(
    mergeMap((item) => observed(() => work(item)).pipe(onTrampoline), parallel),
    toArray(),
  );
};

/** The tool call with the name and the arguments that the model means, if it wrote them in another form. */
const readable = (
  given: ToolCallBlock,
  run: OpenRun,
  { hooks }: Context,
  { toolkit }: LoopCall,
): ToolCallBlock => {
  const { iteration } = run;
  const name = meantName(given.name, (it) => toolkit.current.find(it) !== undefined);
  const toolCall = name === given.name ? given : frozen({ ...given, name });
  if (toolCall !== given) {
    hooks.report(iteration, { type: 'repaired', before: given.name, after: name, toolCall });
  }
  const { invalidInput, ...use } = toolCall;
  if (invalidInput === undefined) return toolCall;
  const reading = readJson(invalidInput);
  if ('problem' in reading || !isRecord(reading.value) || hasInexact(reading.value))
    return toolCall;
  const read = frozen({ ...use, input: reading.value });
  if (reading.repair)
    hooks.report(iteration, { type: 'repaired', toolCall: read, ...reading.repair });
  return read;
};

/** Groups tool calls that run in parallel: neighbours, unless one is exclusive. Skips those that reuse a result. */
const batchesOf = (uses: readonly PlannedCall[]): readonly (readonly PlannedCall[])[] => {
  const batches: PlannedCall[][] = [];
  let together = false;
  for (const use of uses) {
    if (use.sameAs !== undefined) continue;
    const alone = use.tool?.exclusive === true;
    if (together && !alone) batches.at(-1)?.push(use);
    else batches.push([use]);
    together = !alone;
  }
  return batches;
};

const reusedResult = (
  toolCallId: string | undefined,
  { messages }: OpenRun,
  results: readonly ToolCallResult[],
): ToolResultBlock | undefined => {
  const isIt = (result: ToolResultBlock): boolean => result.toolCallId === toolCallId;
  const fresh = results.find(({ result }) => isIt(result));
  if (fresh !== undefined) return fresh.result;
  const earlier = messages.findLast(
    (message): message is ToolMessage => message.role === 'tool' && message.content.some(isIt),
  );
  return earlier?.content.find(isIt);
};

const settle = (
  run: OpenRun,
  message: AssistantMessage,
  uses: readonly PlannedCall[],
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
  const below = results.reduce((all, { usage }) => addUsage(all, usage), noUsage);
  const spent = tokensIn(below) === 0 ? run : spend(run, below, 'acting');
  const answered = answerTools(spent, { ...message, content }, toolMessage, {
    toolRuns: results.map(toToolRun),
    uses: results.map((it, index) => useOf(it, uses[index])).filter((use) => use !== undefined),
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
}: Pick<ToolCallResult, 'toolCall' | 'result'>): readonly Suspension[] =>
  later
    ? (later.below?.waiting ?? [{ toolCall, request: later.request, from: sourceOf(later.from) }])
    : [];

/** Stored data may lack it, or have another value: then it is for the program. */
const sourceOf = (source: unknown): ResultSource => (source === 'client' ? source : 'program');

const useOf = (
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
