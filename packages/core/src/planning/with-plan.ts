import type { AgentOptions } from '../agent-options.js';
import { insertAfter, insertBefore } from '../phase-list.js';
import { acting } from '../phases/acting.js';
import { reasoning } from '../phases/reasoning.js';
import { withOwnTools } from '../with-own-tools.js';
import type { InputSchema } from '../schema.js';
import { plan, type PlanOptions } from './plan.js';
import { createPlanTools } from './plan-tools.js';

/**
 * Lets the model of an agent keep a plan: gives it the tools `create_plan`, `update_step` and `revise_plan`, and shows it the plan in every request. It
 * costs no request of its own, but the turns in which the model writes the plan.
 */
export const withPlan = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlanOptions = {},
): AgentOptions<Output> => {
  const phase = plan(settings);
  const { use = [], ...whole } = withOwnTools(options, createPlanTools());
  return { ...whole, use: [...use, insertBefore(reasoning, phase), insertAfter(acting, phase)] };
};
