export { awaitDecision } from './messages.js';
export {
  type AskedTool,
  type CallPlace,
  type DbosEngine,
  type DbosOptions,
  type FollowOptions,
  openDbos,
} from './open-dbos.js';
export type { PlainCallOptions, StartOptions } from './order.js';
export type { PerformedAgent, WorkerCallOptions } from './perform.js';
export type { WorkedAgent, WorkedCall, WorkNotice, WorkOptions } from './work.js';
