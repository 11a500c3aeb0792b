// Agents that work together: as tools of each other, or as steps of a program that is an agent itself.
export { agentTool, type AgentToolOptions, type DelegationSchema } from './agent-tool.js';
export { aggregate } from './aggregate.js';
export { asAgent, type StepAgentOptions } from './as-agent.js';
export { createStep, type StepRun } from '../compose/step-runs.js';
export { debate, type DebateOptions } from './debate.js';
export { handoff, type HandoffOptions } from './handoff.js';
export {
  carryAll,
  carryLast,
  carryWords,
  type HandoffFilter,
  type Handover,
} from './handoff-filters.js';
export { hub, type HubOptions, type HubRounds, type HubTurns } from './hub.js';
export { type ModelRoute, routeBy, type RouteByOptions } from './route-by.js';
export { supervisor, type SupervisorOptions, type Worker } from './supervisor.js';
export type { Decide } from './take-turns.js';
export type { Member } from './transfers.js';
export type { ReplyOf, Transcript } from './transcript.js';
