import { map } from 'rxjs';
import type { AgentOptions } from '../../agent.js';
import { withOwnTools } from '../select-tools.js';
import { alsoEnded, type PhaseFactory } from '../../seams/phase.js';
import type { Context } from '../../seams/context.js';
import type { StatePatch } from '../../events.js';
import { type Message, type ToolUseBlock, toolUsesOf } from '../../values/message.js';
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
  changedPlan,
  isSettled,
  type Plan,
  planKey,
  planStatuses,
  planText,
  planTools,
} from './plan-state.js';
import { planPrompt } from './planning-options.js';

/** Lets the model of an agent keep a plan: gives it the tools `create_plan`, `update_step` and `revise_plan`, and shows it the plan in every request. It costs no request of its own, but the turns in which the model writes the plan. */
export const withPlan = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlanOptions = {},
): AgentOptions<Output> => {
  const phase = plan(settings);
  const { use = [], ...whole } = withOwnTools(options, createPlanTools());
  return { ...whole, use: [...use, insertBefore(reasoning, phase), insertAfter(acting, phase)] };
};

/** How a plan is shown. */
export interface PlanOptions {
  /** What stands above it in each request, instead of what does by default. */
  readonly prompt?: string;
}

/**
 * Makes a phase that keeps the plan of a call: it does what the model has said with the tools of `createPlanTools`, tells each change by a `stateChanged` event
 * with the name `plan`, and shows the plan as it stands in every request as `[Plan]`. It asks no model. A plan of an earlier call goes on where the
 * conversation still holds the uses that made it. Put it before `reasoning` and behind `acting`; `withPlan` does so.
 */
export const plan = (options: PlanOptions = {}): PhaseFactory => {
  checkOptions('plan()', options, { prompt: isText });
  const { prompt = planPrompt } = options;
  const planning = ({ hooks }: Pick<Context, 'hooks'>) =>
    map((run: Run) => {
      const seen = seenKey.of(run);
      const uses = usesSince(run.messages, seen);
      const { now, patches } = seen === undefined ? restored(uses) : after(planKey.of(run), uses);
      const hasChanged = now !== undefined && patches.length > 0;
      if (hasChanged) {
        hooks.report(run.iteration, { type: 'stateChanged', name: 'plan', state: now, patches });
      }
      if (hasEnded(run)) return run;
      const upToDate = seenKey.set(run, run.messages.at(-1)?.id);
      if (!hasChanged) return upToDate;
      return note(planKey.set(upToDate, now), 'Plan', `${prompt}\n${planText(now)}`);
    });
  return alsoEnded(planning);
};

const seenKey = runKey<string | undefined>('plan/seen', undefined);

/** The plan with which earlier calls have left off; one that is settled is of the past. */
const restored = (uses: readonly ToolUseBlock[]): After => {
  const { now } = after(undefined, uses);
  return now === undefined || now.steps.every(isSettled)
    ? { now: undefined, patches: [] }
    : { now, patches: [{ op: 'replace', path: [], value: now }] };
};

const usesSince = (
  messages: readonly Message[],
  seen: string | undefined,
): readonly ToolUseBlock[] => {
  const from = messages.findLastIndex(({ id }) => id === seen) + 1;
  // The message that asks may be the one that was seen last.
  return messages.slice(from).flatMap((message, index) => {
    if (message.role !== 'tool') return [];
    const asked = messages[from + index - 1];
    if (asked?.role !== 'assistant') return [];
    const failed = message.content.filter(({ isError }) => isError).map((it) => it.toolUseId);
    return toolUsesOf(asked).filter((use) => isPlanUse(use) && !failed.includes(use.id));
  });
};

interface After {
  readonly now: Plan | undefined;
  readonly patches: readonly StatePatch[];
}

const after = (before: Plan | undefined, uses: readonly ToolUseBlock[]): After =>
  uses.reduce<After>(
    ({ now, patches }, use) => {
      const change = changedPlan(now, use);
      return 'plan' in change
        ? { now: change.plan, patches: [...patches, ...change.patches] }
        : { now, patches };
    },
    { now: before, patches: [] },
  );

/** Makes the tools by which the model keeps its plan. The phase `plan` does what they say. */
export const createPlanTools = (): readonly Tool[] => {
  const [create, update, revise] = planTools;
  /** What the uses of one message before this one have made of the plan: its phase does not know of them yet. */
  const made = new WeakMap<readonly Message[], Plan>();
  const answer = (
    name: string,
    input: Readonly<Record<string, unknown>>,
    { messages, kept }: ToolContext,
  ): unknown => {
    const change = changedPlan(made.get(messages) ?? planKey.of({ kept }), { name, input });
    if ('problem' in change) return failedOutput(change.problem);
    made.set(messages, change.plan);
    const { steps } = change.plan;
    const left = steps.filter((step) => !isSettled(step)).length;
    // The plan itself stands in the next request.
    return left === 0
      ? 'All steps of the plan are settled.'
      : `Steps of the plan: ${steps.length}. To be done: ${left}.`;
  };
  const steps = {
    type: 'array',
    items: { type: 'string', description: 'What is done in the step, in a few words.' },
  } as const;
  return [
    tool({
      name: create,
      idempotent: true,
      description:
        'Writes a plan: a goal and the steps to it, in order. For tasks that take several steps; it takes the place of a plan that there is.',
      input: jsonSchema({
        type: 'object',
        properties: {
          goal: { type: 'string', description: 'What is to be reached.' },
          steps,
        },
        required: ['goal', 'steps'],
      }),
      exclusive: true,
      run: (input, context) => answer(create, input, context),
    }),
    tool({
      name: update,
      idempotent: true,
      description:
        'Says how far a step of the plan is: before it is begun, when it is done, and when it is given up.',
      input: jsonSchema({
        type: 'object',
        properties: {
          step: { type: 'integer', minimum: 1, description: 'The number of the step.' },
          status: { type: 'string', enum: [...planStatuses] },
          outcome: {
            type: 'string',
            description: 'What came of it, or why it was given up, in a sentence.',
          },
        },
        required: ['step', 'status'],
      }),
      exclusive: true,
      run: (input, context) => answer(update, input, context),
    }),
    tool({
      name: revise,
      idempotent: true,
      description:
        'Changes the steps of the plan that are still to come: gives all of them, in order. Steps that are done or abandoned stay.',
      input: jsonSchema({ type: 'object', properties: { steps }, required: ['steps'] }),
      exclusive: true,
      run: (input, context) => answer(revise, input, context),
    }),
  ];
};

const isPlanUse = ({ name }: Pick<ToolUseBlock, 'name'>): boolean =>
  planTools.some((known) => known === name);
