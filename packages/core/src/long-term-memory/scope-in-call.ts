import type { CallInfo } from '../call-info.js';
import { messageOf } from '../errors.js';
import type { Context } from '../context.js';
import { valueOf } from '../tools/context-key.js';
import type { MemoryScope } from './long-term-memory.js';
import { type ScopeOfCall, scopeOfCall } from './scope-of-call.js';

/** Whose memory a call has; of nobody's, a `warning` says why. */
export type ScopeInCall = (
  context: Pick<Context, 'call' | 'hooks' | 'values'>,
) => MemoryScope | undefined;

/** Asks once for each call whose memory it has. */
export const scopeInCall = (scopeOf: ScopeOfCall): ScopeInCall => {
  const known = new WeakMap<CallInfo, { readonly scope: MemoryScope | undefined }>();
  return (context) => {
    const { call } = context;
    const asked = known.get(call) ?? { scope: found(scopeOf, context) };
    known.set(call, asked);
    return asked.scope;
  };
};

const found = (
  scopeOf: ScopeOfCall,
  { call, values, hooks }: Parameters<ScopeInCall>[0],
): MemoryScope | undefined => {
  try {
    const { callId, sessionId, agent, metadata } = call;
    return scopeOfCall(scopeOf, {
      callId,
      agent,
      metadata,
      get: (key) => valueOf(key, values),
      ...(sessionId === undefined ? {} : { sessionId }),
    });
  } catch (error) {
    const message = `The call has no long-term memory: ${messageOf(error)}`;
    hooks.report(hooks.iteration(), { type: 'warning', message });
    return undefined;
  }
};
