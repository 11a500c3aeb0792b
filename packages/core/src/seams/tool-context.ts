import type { CallInfo } from '../values/reply.js';
import { type MillraceError, misuse } from '../values/errors.js';
import type { Lending } from './context.js';
import type { LazyAbort } from '../flow/lazy-abort.js';
import type { OpenRun } from '../run.js';
import { valueOf } from '../tools/context-key.js';
import { liveToolkit, type ToolkitCell } from '../tools/toolkit.js';
import type { ToolContext } from '../tools/types.js';
import { type CallContext, randomId } from './call-context.js';
import { cell } from '../step.js';
import { addSpending, type CostBelow, costBelow, noSpending, type Spending } from './spending.js';

/** What tells the idempotency keys of a family of calls from those of others with the same ids. */
export const keySeed = cell('family', () => ({ id: `/${randomId()}` }));

/** Tells whether a tool that makes a call runs, at whatever depth, within another one: that one waits for it. */
export const isWithin = (parent: ToolContext | undefined, call: CallInfo): boolean =>
  parent !== undefined && toolScopeOf(parent).scope.lineage.includes(call);

/** Makes what a run of a tool is lent. A call that names it as its parent belongs to this scope. */
export const createToolContext = (
  scope: CallContext,
  toolkit: ToolkitCell,
  { toolUseId, stepId, purpose, speaks = false }: Lending,
  { iteration, messages, kept }: Pick<OpenRun, 'iteration' | 'messages' | 'kept'>,
  abort: LazyAbort,
  /** Whether a call may still begin. */
  isOver: () => boolean = () => false,
): ToolContext => {
  const { call, demand, scheduler, values } = scope;
  const { callId, agent, metadata } = call;
  const context: ToolContext = {
    ...scope.labels,
    callId,
    toolUseId,
    idempotencyKey: `${callId}/${toolUseId}${scope.local(keySeed).id}`,
    agent,
    metadata,
    iteration,
    messages,
    kept,
    get signal() {
      return abort.signal;
    },
    demand,
    scheduler,
    get toolkit() {
      return liveToolkit(toolkit);
    },
    get: (key) => valueOf(key, values),
  };
  // Who decides on a run makes calls of other ids than the run does: that may be resumed without.
  const below = `${callId}/${idPartOf(toolUseId)}${purpose === undefined ? '' : `+${purpose}`}`;
  let spent = noSpending;
  let halt: MillraceError | undefined;
  scopes.set(context, {
    get halt() {
      return halt;
    },
    haltBy: (error) => void (halt ??= error),
    scope,
    hold: () => scope.holds.begin(stepId),
    isOver,
    get spent() {
      return spent;
    },
    spend: (spending) => {
      spent = addSpending(spent, spending);
      scope.spend?.(spending);
    },
    callIds: createCallIds(below),
    speaks,
  });
  return context;
};

/** Makes contexts for parallel branches of one tool run: the calls of each branch have ids of their own, the same after a resume. */
export const forkToolContext = (context: ToolContext, ways: number): readonly ToolContext[] => {
  const { callIds } = toolScopeOf(context);
  return callIds.aside(ways).map((own) => elsewhere(context, { callIds: own }));
};

/** The same context, for calls that are made otherwise. */
const elsewhere = (
  context: ToolContext,
  change: Partial<Pick<ToolScope, 'callIds' | 'speaks'>>,
): ToolContext => {
  const place = toolScopeOf(context);
  // It is the same in all but what it is.
  const own = new Proxy(context, {});
  const { callIds = place.callIds, speaks = place.speaks } = change;
  scopes.set(own, {
    ...place,
    get spent() {
      return place.spent;
    },
    callIds,
    speaks,
  });
  return own;
};

const heard = <Options extends { readonly parent?: ToolContext }>(
  options: Options,
  speaks: boolean,
): Options => {
  const { parent } = options;
  if (parent === undefined || toolScopeOf(parent).speaks === speaks) return options;
  return { ...options, parent: elsewhere(parent, { speaks }) };
};

/** Returns the options for calls that speak for the call above: `text()` includes what they say, and UIs show it as the answer. Only for calls whose words are the answer. Without a `parent` nothing changes. */
export const speaking = <Options extends { readonly parent?: ToolContext }>(
  options: Options,
): Options => heard(options, true);

/** Returns the options for calls that take part in an answer, and do not give it: what they say is not shown as the answer. */
export const silent = <Options extends { readonly parent?: ToolContext }>(
  options: Options,
): Options => heard(options, false);

interface ToolScope {
  readonly scope: CallContext;
  /** Keeps the step in which the tool runs from being cut. */
  readonly hold: () => () => void;
  readonly isOver: () => boolean;
  /** What has stopped a call below: whatever the tool makes of it, it is not what the tool gives. */
  readonly halt: MillraceError | undefined;
  readonly haltBy: (error: MillraceError) => void;
  /** What the calls below have cost until now, at any depth. */
  readonly spent: Spending;
  readonly spend: (spending: Spending) => void;
  readonly callIds: CallIds;
  /** Whether a call from here speaks for the call above. */
  readonly speaks: boolean;
}

interface CallIds {
  readonly next: () => string;
  readonly aside: (ways: number) => readonly CallIds[];
}

const createCallIds = (below: string): CallIds => {
  const nth = counter();
  return {
    next: () => {
      const index = nth();
      // No position of a step has a plus: what the second call does is not taken for the first one's.
      return index === 1 ? below : `${below}+${index}`;
    },
    aside: (ways) => {
      const index = nth();
      return Array.from({ length: ways }, (_, way) =>
        createCallIds(`${below}+${index}.${way + 1}`),
      );
    },
  };
};

export const spentBelow = (lent: ToolContext): CostBelow => costBelow(toolScopeOf(lent).spent);

/** Throws if a call below ended by a fatal error: nothing must be recorded of a tool that was stopped with it. */
export const refuseHalted = (lent: ToolContext): void => {
  const { halt } = toolScopeOf(lent);
  if (halt) throw halt;
};

const scopes = new WeakMap<ToolContext, ToolScope>();

export const toolScopeOf = (context: ToolContext): ToolScope => {
  const place = scopes.get(context);
  if (place) return place;
  throw misuse("'parent' must be the context of a tool's run, not a copy.");
};

export const counter = (from = 0): (() => number) => {
  let last = from;
  return () => (last += 1);
};

/** The part of the ids of the calls that a tool makes that stands for its use. Ids of tool uses are the model's: one must not read like the position of a step. */
export const idPartOf = (toolUseId: string): string =>
  /^[^\d/+][^/+]*$/.test(toolUseId)
    ? toolUseId
    : `use+${toolUseId.replace(/[^\w.-]/g, (unit) => `%${unit.charCodeAt(0).toString(16)}`)}`;
