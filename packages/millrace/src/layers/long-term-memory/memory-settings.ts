import type { ObservableInput } from 'rxjs';
import type { CallInfo, ToolRun } from '../../values/reply.js';
import type { Call } from '../../seams/call.js';
import { misuse } from '../../values/errors.js';
import type { Complete } from '../../values/options.js';
import type { ToolContext } from '../../tools/types.js';
import type { LongTermMemory, MemoryScope, NewMemory } from './long-term-memory.js';
import { checkScope } from './long-term-memory.js';

/** Who manages the memory: the framework, around each call (`static`), the model with tools (`agent`), or `both`. */
export type LongTermMemoryMode = 'static' | 'agent' | 'both';

export interface LongTermMemoryOptions {
  /** The store: `inProcessLongTermMemory()` or a persistent one. Agents may share it. */
  readonly memory: LongTermMemory;
  /** Default: `static`. */
  readonly mode?: LongTermMemoryMode | undefined;
  /** The scope of a call, `{ userId }` or `{ userId, sessionId }`; errors are warnings. Default: `metadata.userId`. */
  readonly scope?: ScopeOfCall | undefined;
  /** Maximum number of entries to show. Default: 3. */
  readonly top?: number | undefined;
  /** Whether the model ranks the entries, with an extra request charged to `rankMemories`. Default: false. */
  readonly rank?: boolean | undefined;
  /** Number of entries to rank. Default: 10. */
  readonly candidates?: number | undefined;
  /** Whether to recall again for each step of a plan. Default: true, for agents that keep a plan. */
  readonly recallForSteps?: boolean | undefined;
  /** Before the history, or directly before the input (cacheable). Default: `beforeHistory`, or that of `retrieve`. */
  readonly placement?: 'beforeHistory' | 'beforeInput' | undefined;
  /** Returns the query; blank for no search. Default: the question, as text. */
  readonly query?: ((call: Call) => string) | undefined;
  /** Timeout of each operation in milliseconds; the call waits for it. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Returns the entry for a tool call, or nothing to skip it; `false` skips all. An Observable or a Promise may take `timeoutMs`; tool calls are
   * summarised one after the other, before the call ends. Default: name, input, output.
   */
  // It is mostly synchronous.
  // eslint-disable-next-line rxjs-x/finnish
  readonly summariseTool?:
    ((run: ToolRun) => ToolSummary | ObservableInput<ToolSummary>) | false | undefined;
  /** Whether the model can forget entries. Text that it reads may trick it into that. Default: false. */
  readonly forgetTool?: boolean | undefined;
}

/** The entry for a tool call; without a string, or with a blank one, there is no entry. */
export type ToolSummary = string | undefined;

export type MemorySettings = Complete<LongTermMemoryOptions>;

export const isStatic = ({ mode }: MemorySettings): boolean => mode !== 'agent';

export const isAgentic = ({ mode }: MemorySettings): boolean => mode !== 'static';

/** The call that accesses a memory: data of its caller and program, never of a model. */
export type MemoryCaller = Pick<ToolContext, 'callId' | 'sessionId' | 'agent' | 'metadata' | 'get'>;

export type ScopeOfCall = (call: MemoryCaller) => MemoryScope;

export const scopeOfUser: ScopeOfCall = ({ metadata }) => {
  const userId = Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;
  if (userId !== undefined) return { userId };
  throw misuse(
    "the call has no user. Pass { metadata: { userId } } with the call, or set 'scope' of withLongTermMemory().",
  );
};

/** The scope of a call. Throws without a user, which must never mean all users. */
export const scopeOfCall = (scope: ScopeOfCall, call: MemoryCaller): MemoryScope => {
  const callScope = scope(call);
  checkScope("withLongTermMemory(): 'scope'", callScope);
  const { userId, sessionId } = callScope;
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
