// Preconfigured agents as options: `createAgent(action({ model, tools }))`.
export { action, flat, guarded, native } from './presets.js';
export { planner } from './planner.js';
