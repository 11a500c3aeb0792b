export type { AgentStore, OwnOptions, PlainOptions } from './attempt.js';
export { awaitDecision } from './attempt.js';
export {
  type AgentHandlers,
  type CallOnRestate,
  type CallRequest,
  type CallResult,
  restateAgents,
  type RestateAgents,
  type RestateAgentsOptions,
  type SentResult,
} from './restate-agents.js';
