import { misuse } from '../errors.js';
import type { ToolContext } from '../tools/types.js';
import { checkScope } from './check-scope.js';
import type { MemoryScope } from './long-term-memory.js';

/** The call that a memory is asked for: what its caller and its program say of it, and nothing that a model says. */
export type MemoryCaller = Pick<ToolContext, 'callId' | 'sessionId' | 'agent' | 'metadata' | 'get'>;

/** Says whose memory a call has: the scope of its user, or of its session. */
export type ScopeOfCall = (call: MemoryCaller) => MemoryScope;

export const userOfCall: ScopeOfCall = ({ metadata }) => {
  const userId = Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;
  if (userId !== undefined) return { userId };
  throw misuse(
    "the call does not say who it is for. Pass { metadata: { userId } } with it, or give withLongTermMemory() a 'scope'.",
  );
};

/** The scope of a call; one that names no user is an error, and never the scope of all. */
export const scopeOfCall = (scope: ScopeOfCall, call: MemoryCaller): MemoryScope => {
  const own = scope(call);
  checkScope("withLongTermMemory(): 'scope'", own);
  const { userId, sessionId } = own;
  return sessionId === undefined ? { userId } : { userId, sessionId };
};
