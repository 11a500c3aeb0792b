// Known loops as options of an agent: `createAgent(action({ model, tools }))`.
export { action, flat, native } from './presets.js';
export { guarded, type GuardedOptions } from './guarded.js';
export { planner, type PlannerOptions } from './planner.js';
