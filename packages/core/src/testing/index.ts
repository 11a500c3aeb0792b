export { finish, text, thinking, toolUse } from './chunks.js';
export type { Check } from './contract.js';
export { type CallStoreHandles, journalContract } from './journal-contract.js';
export { longTermMemoryContract } from './long-term-memory-contract.js';
export { type MarbleHelpers, type MarbleModel, marbles, type Subscriptions } from './marbles.js';
export { memoryContract } from './memory-contract.js';
export { lentContext, modelContract } from './model-contract.js';
export { record } from './record.js';
export { type ScriptedAnswer, type ScriptedModel, scriptedModel } from './scripted-model.js';
export {
  lentToolContext,
  type LentToolContextOptions,
  toolContract,
  type ToolSamples,
} from './tool-contract.js';
export { verifyEvents, type VerifyEventsOptions } from './verify-events.js';
