export { cassette } from './cassettes/cassette.js';
export {
  finish,
  type ScriptedAnswer,
  type ScriptedModel,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from './scripted-model.js';
export { type Check, record, verifyEvents } from './verify-events.js';
export { journalContract } from './journal-contract.js';
export { longTermMemoryContract } from './long-term-memory-contract.js';
export { layerContract } from './layer-contract.js';
export { type MarbleHelpers, marbles } from './marbles.js';
export { memoryContract } from './memory-contract.js';
export { lentContext, modelContract } from './model-contract.js';
export { lentToolContext, toolContract } from './tool-contract.js';
export { sessionStoreContract } from './session-store-contract.js';
