// Known loops as options of an agent: `createAgent(action({ model, tools }))`.
export { action } from './action.js';
export { flat } from './flat.js';
export { guarded, type GuardedOptions } from './guarded.js';
export { native } from './native.js';
export { planner, type PlannerOptions } from './planner.js';
