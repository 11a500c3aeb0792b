// Thinking before, between and after the turns of the loop, and plans, as phases and tools.
export { analyseTask, reflect } from './thinking-phases.js';
export { completeTask, synthesize } from './synthesize.js';
export { plan, withPlan } from './plan.js';
export { isPlan, type Plan, type PlanStep, planText } from './plan-state.js';
export { rewriteQuestion } from './rewrite-question.js';
