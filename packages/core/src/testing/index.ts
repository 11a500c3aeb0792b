export {
  finish,
  type ScriptedAnswer,
  type ScriptedModel,
  scriptedModel,
  text,
  thinking,
  toolUse,
} from './scripted-model.js';
export { type Check, record, verifyEvents, type VerifyEventsOptions } from './verify-events.js';
export { type CallStoreHandles, journalContract } from './journal-contract.js';
export { longTermMemoryContract } from './long-term-memory-contract.js';
export { type MarbleHelpers, type MarbleModel, marbles, type Subscriptions } from './marbles.js';
export { memoryContract } from './memory-contract.js';
export { lentContext, modelContract } from './model-contract.js';
export type { LentToolContextOptions, ToolSamples } from './tool-contract.js';
export { lentToolContext, toolContract } from './tool-contract.js';
export { sessionStoreContract } from './session-store-contract.js';
