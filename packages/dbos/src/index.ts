export { awaitDecision } from './messages.js';
export { type DbosEngine, type DbosOptions, openDbos } from './open-dbos.js';
export type { StartOptions } from './order.js';
export type { WorkedAgent, WorkNotice, WorkOptions } from './work.js';
