export type { AgentStore, OwnOptions, PlainOptions } from './attempt.js';
export { waitForDecision } from './attempt.js';
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
