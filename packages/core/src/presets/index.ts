// Known loops as options of an agent: `createAgent(action({ model, tools }))`.
export { action, flat, guarded, type GuardedOptions, native } from './presets.js';
export { planner, type PlannerOptions } from './planner.js';
