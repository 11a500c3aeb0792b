import type { Context } from '../seams/layer.js';
import type { Below } from '../seams/spending.js';
import { toolScopeOf } from '../seams/tool-context.js';
import { cell, type Locals } from '../step.js';
import type { Tool, ToolContext } from '../tools/types.js';
import { fatal, MillraceError } from '../values/errors.js';
import { parentToolOf } from '../seams/call-scope.js';
import { recorded } from './recorded.js';

/** The calls of an earlier call that this one continues, by the places of their steps. */
interface ContinuedCalls {
  /** Those that had begun. */
  readonly known: ReadonlySet<string>;
  /** Those that waited, at any depth. */
  readonly waiting: ReadonlySet<string>;
  /** Those with a tool call that waited itself. */
  readonly asking: ReadonlySet<string>;
}

const nothing: ContinuedCalls = { known: new Set(), waiting: new Set(), asking: new Set() };

const continued = cell('family', () => ({
  calls: nothing,
  reached: new Set<string>(),
  /** Of tool calls that may make their calls in another order. */
  orders: new WeakMap<object, Independent[]>(),
}));

/** Notes the calls that are continued: all their steps, those that waited, and tool calls that waited themselves. */
export const noteContinued = (
  local: Locals,
  steps: Readonly<Record<'all' | 'waiting' | 'asking', Iterable<string>>>,
): void => {
  const callsOf = (ids: Iterable<string>, step: RegExp): ReadonlySet<string> =>
    new Set([...ids].filter((id) => step.test(id)).map((id) => id.replace(step, '')));
  local(continued).calls = {
    known: callsOf(steps.all, /\/open$/u),
    waiting: callsOf(steps.waiting, /\/(?:reply|\d+\/\d+)$/u),
    asking: callsOf(steps.asking, /\/\d+\/\d+$/u),
  };
};

/**
 * Notes that a call has begun. Throws if it is a new one while others of its tool call have not begun that waited: their
 * place has changed, so it may be one of them that would start again, without the decision that it waited for.
 */
export const reach = (
  context: Pick<Context, 'info' | 'local'>,
  isWritten: (id: string) => boolean,
): void => {
  const {
    info: { callId },
    local,
  } = context;
  const above = parentToolOf(context);
  if (above === undefined) return;
  const { calls, reached, orders } = local(continued);
  reached.add(callId);
  if (calls.known.has(callId) || isWritten(`${callId}/open`)) return;
  const independent = orders.get(above.below) ?? [];
  const missing = waitingOf(calls, above.below).find(
    (id) => !reached.has(id) && !independent.some((isIndependent) => isIndependent(callId, id)),
  );
  if (missing !== undefined) {
    throw changed(`the call '${missing}' waits, and '${callId}' begins instead`);
  }
};

/** The calls of a tool call that waited. */
const waitingOf = ({ known, waiting }: ContinuedCalls, { base }: Below): readonly string[] => {
  const own = [...known].filter(
    (id) => id.startsWith(base) && /^(?:[+/]|$)/u.test(id.slice(base.length)),
  );
  return own.filter((id) => waiting.has(id) && !own.some((other) => id.startsWith(`${other}/`)));
};

/** Whether a new call may begin before one that waits has. */
type Independent = (begins: string, waits: string) => boolean;

/**
 * For a step that makes its calls by name, in an order that may differ each time. Without it, no new call begins before those
 * that wait have, because it could be one of them under another name.
 */
export const callsInAnyOrder = (parent: ToolContext, isIndependent: Independent): void => {
  const { below, scope } = toolScopeOf(parent);
  const { orders } = scope.context.local(continued);
  orders.set(below, [...(orders.get(below) ?? []), isIndependent]);
};

/** Throws if a call with a decision never began. A resumed one may have recorded its end. */
export const assertAllReached = ({ local }: { readonly local: Locals }): void => {
  if (local(recorded).by?.mayBeWritten('open') === true) return;
  const { calls, reached } = local(continued);
  const missing = [...calls.asking].find((id) => !reached.has(id));
  if (missing !== undefined)
    throw changed(`nothing makes the call '${missing}' any more, which waits`);
};

/** Throws unless a tool can continue the calls that it has made. */
export const assertCallsAgents = (
  name: string,
  tool: Pick<Tool, 'callsAgents'> | undefined,
): void => {
  if (tool === undefined) throw changed(`the agent has no tool '${name}' any more`);
  if (tool.callsAgents === true) return;
  throw changed(
    `the tool '${name}' calls no agent any more: it was guarded by approveLater(), or was an agent, or lacks 'callsAgents: true'`,
  );
};

/** Throws if the tool whose result comes was removed. */
export const assertAwaited = (name: string, tool: object | undefined): void => {
  if (tool === undefined) throw changed(`the agent has no tool '${name}' any more`);
};

const changed = (what: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidResume',
      `The agent has changed since its call was suspended: ${what}. Nothing takes the result, so nothing runs. Continue with the agent as it was, or begin a new conversation.`,
      { status: 409, userMessage: 'The assistant has changed since it asked. Please start again.' },
    ),
  );
