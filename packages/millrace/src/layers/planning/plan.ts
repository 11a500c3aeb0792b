import { map } from 'rxjs';
import { withOwnTools } from '../select-tools.js';
import { alsoEnded } from '../../seams/phase.js';
import type { PhaseFactory, Context } from '../../seams/layer.js';
import type { StatePatch } from '../../events.js';
import { type Message, type ToolCallBlock, toolCallsOf } from '../../values/message.js';
import { checkOptions, isText } from '../../values/options.js';
import { insertAfter, insertBefore } from '../../phases/phase-list.js';
import { acting } from '../../phases/acting.js';
import { reasoning } from '../../phases/reasoning.js';
import { hasEnded, note, type Run, runKey } from '../../run.js';
import type { InputSchema } from '../../values/schema.js';
import { jsonSchema } from '../../schema/index.js';
import { failedOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import type { Tool, ToolContext } from '../../tools/types.js';
import {
  changePlan,
  isSettled,
  type Plan,
  planKey,
  planStatuses,
  planText,
  planTools,
} from './plan-state.js';
import { planPrompt } from './planning-options.js';
import type { AgentOptions } from '../../call/agent-options.js';

/** Lets the model keep a plan of up to 50 steps by `create_plan`, `update_step` and `revise_plan`, which keeps settled steps, and shows it in every request. */
export const withPlan = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlanOptions = {},
): AgentOptions<Output> => {
  const phase = plan(settings);
  const { use = [], ...whole } = withOwnTools(options, createPlanTools());
  return { ...whole, use: [...use, insertBefore(reasoning, phase), insertAfter(acting, phase)] };
};

export interface PlanOptions {
  /** Text above the plan in each request. Default: a built-in prompt. */
  readonly prompt?: string | undefined;
}

/**
 * Creates a phase that keeps the plan of a call: it applies the calls of plan tools, emits each change as a
 * `stateChanged` event named `plan`, and shows the current plan in every request as `[Plan]`. Makes no requests.
 * Resumes an unfinished plan of an earlier call while the conversation still contains its tool calls. Put it before
 * `reasoning` and after `acting`, as `withPlan` does.
 */
export const plan = (options: PlanOptions = {}): PhaseFactory => {
  checkOptions('plan()', options, { prompt: isText });
  const { prompt = planPrompt } = options;
  const planning = ({ hooks }: Pick<Context, 'hooks'>) =>
    map((run: Run) => {
      const lastSeen = seenKey.of(run);
      const uses = usesSince(run.messages, lastSeen);
      const { next, patches } =
        lastSeen === undefined ? restorePlan(uses) : applyCalls(planKey.of(run), uses);
      const hasChanged = next !== undefined && patches.length > 0;
      if (hasChanged) {
        hooks.report(run.iteration, { type: 'stateChanged', name: 'plan', state: next, patches });
      }
      if (hasEnded(run)) return run;
      const updated = seenKey.set(run, run.messages.at(-1)?.id);
      if (!hasChanged) return updated;
      return note(planKey.set(updated, next), 'Plan', `${prompt}\n${planText(next)}`);
    });
  return alsoEnded(planning);
};

const seenKey = runKey<string | undefined>('plan/seen', undefined);

/** Restores the plan of earlier calls, unless all its steps are settled. */
const restorePlan = (uses: readonly ToolCallBlock[]): PlanUpdate => {
  const { next } = applyCalls(undefined, uses);
  return next === undefined || next.steps.every(isSettled)
    ? { next: undefined, patches: [] }
    : { next, patches: [{ op: 'replace', path: [], value: next }] };
};

const usesSince = (
  messages: readonly Message[],
  seen: string | undefined,
): readonly ToolCallBlock[] => {
  const from = messages.findLastIndex(({ id }) => id === seen) + 1;
  // The message with the tool calls may be the last one seen.
  return messages.slice(from).flatMap((message, index) => {
    if (message.role !== 'tool') return [];
    const caller = messages[from + index - 1];
    if (caller?.role !== 'assistant') return [];
    const failed = message.content.filter(({ isError }) => isError).map((it) => it.toolCallId);
    return toolCallsOf(caller).filter((use) => isPlanUse(use) && !failed.includes(use.id));
  });
};

interface PlanUpdate {
  readonly next: Plan | undefined;
  readonly patches: readonly StatePatch[];
}

const applyCalls = (before: Plan | undefined, uses: readonly ToolCallBlock[]): PlanUpdate =>
  uses.reduce<PlanUpdate>(
    ({ next, patches }, use) => {
      const change = changePlan(next, use);
      return 'plan' in change
        ? { next: change.plan, patches: [...patches, ...change.patches] }
        : { next, patches };
    },
    { next: before, patches: [] },
  );

/** The tools by which the model keeps its plan. The phase `plan` applies their calls. */
export const createPlanTools = (): readonly Tool[] => {
  const [create, update, revise] = planTools;
  /** Plans after earlier calls of the same message, which the phase has not seen yet. */
  const pending = new WeakMap<readonly Message[], Plan>();
  const resultOf = (
    name: string,
    input: Readonly<Record<string, unknown>>,
    { messages, kept }: ToolContext,
  ): unknown => {
    const change = changePlan(pending.get(messages) ?? planKey.of({ kept }), { name, input });
    if ('problem' in change) return failedOutput(change.problem);
    pending.set(messages, change.plan);
    const { steps } = change.plan;
    const remaining = steps.filter((step) => !isSettled(step)).length;
    // The next request shows the plan itself.
    return remaining === 0
      ? 'All steps of the plan are done or abandoned.'
      : `Steps of the plan: ${steps.length}. To be done: ${remaining}.`;
  };
  const steps = {
    type: 'array',
    items: { type: 'string', description: 'What the step does, in a few words.' },
  } as const;
  return [
    tool({
      name: create,
      idempotent: true,
      description:
        'Creates a plan: a goal and the steps to reach it, in order. For tasks of several steps. Replaces an existing plan.',
      input: jsonSchema({
        type: 'object',
        properties: {
          goal: { type: 'string', description: 'What the plan should achieve.' },
          steps,
        },
        required: ['goal', 'steps'],
      }),
      exclusive: true,
      run: (input, context) => resultOf(create, input, context),
    }),
    tool({
      name: update,
      idempotent: true,
      description:
        'Updates the status of a step: before you start it, when it is done, and if you abandon it.',
      input: jsonSchema({
        type: 'object',
        properties: {
          step: { type: 'integer', minimum: 1, description: 'The number of the step.' },
          status: { type: 'string', enum: [...planStatuses] },
          outcome: {
            type: 'string',
            description: 'The result, or why it was abandoned, in a sentence.',
          },
        },
        required: ['step', 'status'],
      }),
      exclusive: true,
      run: (input, context) => resultOf(update, input, context),
    }),
    tool({
      name: revise,
      idempotent: true,
      description:
        'Replaces the remaining steps of the plan: pass all of them, in order. Steps that are done or abandoned stay.',
      input: jsonSchema({ type: 'object', properties: { steps }, required: ['steps'] }),
      exclusive: true,
      run: (input, context) => resultOf(revise, input, context),
    }),
  ];
};

const isPlanUse = ({ name }: Pick<ToolCallBlock, 'name'>): boolean =>
  planTools.some((known) => known === name);
