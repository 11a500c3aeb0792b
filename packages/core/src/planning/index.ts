// Thinking before, between and behind the turns of the loop, and a plan that the model keeps. All of it is phases and tools.
export { analyseTask, reflect, type ReflectOptions, type ReflectWhen } from './thinking-phases.js';
export {
  completeTask,
  type CompleteTaskOptions,
  synthesize,
  type SynthesizeOptions,
} from './synthesize.js';
export { plan, type PlanOptions, withPlan } from './plan.js';
export { isPlan, type Plan, type PlanStatus, type PlanStep, planText } from './plan-state.js';
export type {
  PlanningOptions,
  PlanningPrompt,
  PlanningPrompts,
  PlanningView,
} from './planning-options.js';
export { rewriteQuestion, type RewriteQuestionOptions } from './rewrite-question.js';
