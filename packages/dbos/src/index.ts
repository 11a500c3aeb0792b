export { awaitDecision } from './messages.js';
export type { AskedTool, CallPlace, DbosEngine, DbosOptions, FollowOptions } from './engine.js';
export { openDbos } from './open-dbos.js';
export type { PlainCallOptions, StartOptions } from './order.js';
export type { PerformedAgent, WorkerCallOptions } from './perform.js';
export type { WorkedAgent, WorkedCall, WorkNotice, WorkOptions } from './worked-agents.js';
