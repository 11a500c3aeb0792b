// Agents that work together: as tools of each other, or as steps of an agent.
export { agentTool, supervisor } from './agent-tool.js';
export { aggregate, asAgent } from './as-agent.js';
export { createStep } from '../../call/callable.js';
export { debate, hub, type Transcript } from './take-turns.js';
export { carryAll, carryLast, carryWords, handoff } from './handoff.js';
export { callsInAnyOrder } from '../../memories/changed-agents.js';
export { callsInOrder } from './member-runs.js';
export { silent, speaking } from '../../seams/tool-context.js';
export { routeBy } from './route-by.js';
