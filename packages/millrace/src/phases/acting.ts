import { from, mergeMap, toArray } from 'rxjs';
import { callTool } from './tool-call.js';
import { andThen, type Eventual } from '../flow/eventual.js';
import { createTrampoline, deferWorkOn } from '../flow/trampoline.js';
import type { LoopCall } from '../seams/call.js';
import type { Context, Phase } from '../seams/layer.js';
import { phase } from '../seams/phase.js';
import { type ToolMessage, type ToolResultBlock, toolCallsOf } from '../values/message.js';
import { type OpenRun, unanswered } from '../run.js';
import { planToolCalls, groupsOf } from '../tools/batch.js';
import { loopProgress } from '../seams/progress.js';
import { settle } from './settle.js';
import { readToolCall } from './read-tool-call.js';
import type { ToolCallResult } from './review-result.js';

/** Runs the tool calls of the last message, and adds their results in the same order. */
export const acting = (context: Context, call: LoopCall): Phase =>
  phase((run) => {
    const message = unanswered(run);
    if (message === undefined) return run;
    const { parallel, maxToolCalls } = call.limits;
    // If the call fails, results so far are not lost.
    const latest = context.local(loopProgress);
    latest.acting = { message, results: [] };
    const toolCalls = toolCallsOf(message).map((it) => readToolCall(it, run, context, call));
    const { plans, extras, isLimited } = planToolCalls(
      run,
      toolCalls,
      call.toolkit.current,
      maxToolCalls,
    );
    if (isLimited) {
      const warning = `The limit of tool calls (${maxToolCalls}) is reached: no more tools are run.`;
      context.hooks.report(run.iteration, { type: 'warning', message: warning });
    }
    // One batch after another; the tools of a batch run together.
    const ran = allOf(groupsOf(plans), 1, (batch) =>
      allOf(batch, parallel, (plan) => callTool(context, call, run, plan)),
    );
    // If a tool with `dedupe` is asked the same twice, the second one gets the result of the first, once that is there.
    const all = andThen(ran, (batches) => {
      const results = batches.flat();
      const repeating = plans.filter(({ sameAs }) => sameAs !== undefined);
      const reused = allOf(repeating, 1, (plan) =>
        callTool(context, call, run, plan, reusedResult(plan.sameAs, run, results)),
      );
      return andThen(reused, (others) => [...results, ...others]);
    });
    return andThen(all, (results) => {
      results.sort((a, b) => a.index - b.index);
      // Adds the results, and what calls of the tools have cost. Ends the run if a tool suspends it, answers or stops.
      latest.run = settle(run, message, plans, results, extras, context, call);
      latest.acting = undefined;
      return latest.run;
    });
  });

/** Does work for each item, for up to `parallel` at the same time. For a single item it is a function call. */
const allOf = <T, Out>(
  items: readonly T[],
  parallel: number,
  work: (item: T) => Eventual<Out>,
): Eventual<readonly Out[]> => {
  const [first] = items;
  if (first === undefined) return [];
  if (items.length === 1) return andThen(work(first), (made) => [made]);
  // Synchronous work would nest: each item waits until the one before has returned.
  const trampoline = createTrampoline();
  return from(items).pipe(
    mergeMap((item) => deferWorkOn(trampoline, () => work(item)), parallel),
    toArray(),
  );
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
