import type { Message, ToolUseBlock } from '../message.js';
import { tool } from '../tool.js';
import { failedOutput } from '../tool-output.js';
import type { Tool, ToolContext } from '../tools/types.js';
import { type Plan, planKey, planStatuses } from './plan-key.js';
import { changedPlan, isSettled, planTools } from './plan-state.js';

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
      input: {
        type: 'object',
        properties: {
          goal: { type: 'string', description: 'What is to be reached.' },
          steps,
        },
        required: ['goal', 'steps'],
      },
      exclusive: true,
      run: (input, context) => answer(create, input, context),
    }),
    tool({
      name: update,
      idempotent: true,
      description:
        'Says how far a step of the plan is: before it is begun, when it is done, and when it is given up.',
      input: {
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
      },
      exclusive: true,
      run: (input, context) => answer(update, input, context),
    }),
    tool({
      name: revise,
      idempotent: true,
      description:
        'Changes the steps of the plan that are still to come: gives all of them, in order. Steps that are done or abandoned stay.',
      input: { type: 'object', properties: { steps }, required: ['steps'] },
      exclusive: true,
      run: (input, context) => answer(revise, input, context),
    }),
  ];
};

export const isPlanUse = ({ name }: Pick<ToolUseBlock, 'name'>): boolean =>
  planTools.some((known) => known === name);
