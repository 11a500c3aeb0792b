import type { CallInfo, ToolRun } from '../../values/reply.js';
import type { Call } from '../../seams/call.js';
import { misuse } from '../../values/errors.js';
import type { ToolContext } from '../../tools/types.js';
import type { LongTermMemory, MemoryScope, NewMemory } from './long-term-memory.js';
import { checkScope } from './long-term-memory.js';

/** Who looks after a memory: the framework, before and behind each call (`static`), the model, by tools (`agent`), or `both`. */
export type LongTermMemoryMode = 'static' | 'agent' | 'both';

/** How an agent remembers its users. */
export interface LongTermMemoryOptions {
  /** Where it is kept: `inProcessLongTermMemory()`, or a store. Agents may share one. */
  readonly memory: LongTermMemory;
  /** Default: `static`. */
  readonly mode?: LongTermMemoryMode;
  /** Returns the scope of a call: `{ userId }`, or `{ userId, sessionId }` for one session. An error is a `warning`. Default: `metadata.userId`. */
  readonly scope?: ScopeOfCall;
  /** Entries that a call is shown at most. Default: 3. */
  readonly top?: number;
  /** Whether the model ranks the entries found, with one more request charged to `rankMemories`. Default: false. */
  readonly rank?: boolean;
  /** Entries that it picks from. Default: 10. */
  readonly candidates?: number;
  /** Whether to recall again for each step of a plan. Default: true, for agents that keep a plan. */
  readonly recallForSteps?: boolean;
  /** Where the model reads the memories: before the history, or right before the input, which keeps the history cacheable. Default: `beforeHistory`, or where `retrieve` puts its passages. */
  readonly placement?: 'beforeHistory' | 'beforeInput';
  /** What is looked for before the loop; nothing, where it is blank. Default: what was asked, as text. */
  readonly query?: (call: Call) => string;
  /** How long the memory may take each time, in milliseconds: a call waits for it. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Says what is remembered of one run of a tool; nothing, where it gives none. `false`: nothing of any. Default: name, input and output, cut. */
  readonly summariseTool?: ((run: ToolRun) => string | undefined) | false;
  /** Whether the model has a tool to forget entries, too. What a model reads may talk it into using it. Default: false. */
  readonly forgetTool?: boolean;
}

export type MemorySettings = Required<LongTermMemoryOptions>;

export const isStatic = ({ mode }: MemorySettings): boolean => mode !== 'agent';

export const isAgentic = ({ mode }: MemorySettings): boolean => mode !== 'static';

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

export const originIn = ({
  callId,
  sessionId,
  agent,
}: Pick<CallInfo, 'callId' | 'sessionId' | 'agent'>): Required<NewMemory>['metadata'] => ({
  callId,
  agent: agent.join('/'),
  ...(sessionId === undefined ? {} : { sessionId }),
});
