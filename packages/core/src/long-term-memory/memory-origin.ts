import type { CallInfo } from '../call-info.js';
import type { NewMemory } from './long-term-memory.js';

export const originIn = ({
  callId,
  sessionId,
  agent,
}: Pick<CallInfo, 'callId' | 'sessionId' | 'agent'>): Required<NewMemory>['metadata'] => ({
  callId,
  agent: agent.join('/'),
  ...(sessionId === undefined ? {} : { sessionId }),
});
