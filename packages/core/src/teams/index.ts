// Agents that work together: as tools of each other, or as steps of a program that is an agent itself.
export {
  agentTool,
  type AgentToolOptions,
  type DelegationSchema,
  supervisor,
  type SupervisorOptions,
  type Worker,
} from './agent-tool.js';
export { aggregate, asAgent, type StepAgentOptions } from './as-agent.js';
export { createStep, type StepRun } from '../callable.js';
export {
  debate,
  type DebateOptions,
  type Decide,
  hub,
  type HubOptions,
  type HubRounds,
  type HubTurns,
  type ReplyOf,
  type Transcript,
} from './take-turns.js';
export {
  carryAll,
  carryLast,
  carryWords,
  handoff,
  type HandoffFilter,
  type HandoffOptions,
  type Handover,
  type Member,
} from './handoff.js';
export { silent, speaking } from '../places.js';
export { type ModelRoute, routeBy, type RouteByOptions } from './route-by.js';
