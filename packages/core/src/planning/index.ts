// Thinking before, between and behind the turns of the loop, and a plan that the model keeps. All of it is phases and tools.
export { analyseTask } from './analyse-task.js';
export { completeTask, type CompleteTaskOptions } from './complete-task.js';
export { plan, type PlanOptions } from './plan.js';
export { isPlan, type Plan, type PlanStatus, type PlanStep } from './plan-key.js';
export { planText } from './plan-state.js';
export { createPlanTools } from './plan-tools.js';
export type { PlanningOptions } from './planning-options.js';
export type { PlanningPrompt, PlanningPrompts, PlanningView } from './planning-prompt.js';
export { reflect, type ReflectOptions, type ReflectWhen } from './reflect.js';
export { rewriteQuestion, type RewriteQuestionOptions } from './rewrite-question.js';
export { synthesize, type SynthesizeOptions } from './synthesize.js';
export { withPlan } from './with-plan.js';
