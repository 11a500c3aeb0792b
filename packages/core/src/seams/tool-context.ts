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

/** Makes the idempotency keys of a family of calls unique, even if ids are reused. */
export const keySeed = cell('family', () => ({ id: `/${randomId()}` }));

/** Whether the tool that makes a call runs within another call, at any depth. */
export const isWithin = (parent: ToolContext | undefined, call: CallInfo): boolean =>
  parent !== undefined && toolScopeOf(parent).scope.lineage.includes(call);

/** Creates the context of a tool call. Calls with it as `parent` belong to this scope. */
export const createToolContext = (
  scope: CallContext,
  toolkit: ToolkitCell,
  { toolCallId, stepId, purpose, speaks = false }: Lending,
  { iteration, messages, kept }: Pick<OpenRun, 'iteration' | 'messages' | 'kept'>,
  abort: LazyAbort,
  /** Whether the tool call has ended, so that no call may start. */
  isOver: () => boolean = () => false,
): ToolContext => {
  const { call, demand, scheduler, values } = scope;
  const { callId, agent, metadata } = call;
  const context: ToolContext = {
    ...scope.labels,
    callId,
    toolCallId,
    idempotencyKey: `${callId}/${toolCallId}${scope.local(keySeed).id}`,
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
  // Calls of deciders have other ids than those of the run: a resumed call may skip the decision.
  const below = `${callId}/${idPartOf(toolCallId)}${purpose === undefined ? '' : `+${purpose}`}`;
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

/** Creates contexts for parallel branches of a tool call: calls of each branch get their own, reproducible ids. */
export const forkToolContext = (context: ToolContext, ways: number): readonly ToolContext[] => {
  const { callIds } = toolScopeOf(context);
  return callIds.aside(ways).map((own) => elsewhere(context, { callIds: own }));
};

const elsewhere = (
  context: ToolContext,
  change: Partial<Pick<ToolScope, 'callIds' | 'speaks'>>,
): ToolContext => {
  const place = toolScopeOf(context);
  // A proxy: equal in all fields, with its own identity.
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

/** Returns options for calls that speak for their parent: `text()` and UIs show their text as the answer. */
export const speaking = <Options extends { readonly parent?: ToolContext }>(
  options: Options,
): Options => heard(options, true);

/** Returns options for calls whose text is not shown as the answer. */
export const silent = <Options extends { readonly parent?: ToolContext }>(
  options: Options,
): Options => heard(options, false);

interface ToolScope {
  readonly scope: CallContext;
  /** Keeps the tool step from being cut. */
  readonly hold: () => () => void;
  readonly isOver: () => boolean;
  /** The fatal error of a sub-agent: it overrides the tool's result. */
  readonly halt: MillraceError | undefined;
  readonly haltBy: (error: MillraceError) => void;
  readonly spent: Spending;
  readonly spend: (spending: Spending) => void;
  readonly callIds: CallIds;
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
      // No step position has a plus, so positions of the second call differ from the first one's.
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

export const spentBelow = (context: ToolContext): CostBelow =>
  costBelow(toolScopeOf(context).spent);

/** Throws if a sub-agent ended by a fatal error: the result of such a tool call must not be recorded. */
export const refuseHalted = (context: ToolContext): void => {
  const { halt } = toolScopeOf(context);
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

/** The tool call's part of the ids of its calls. Models choose these ids: escaped, they differ from step positions. */
export const idPartOf = (toolCallId: string): string =>
  /^[^\d/+][^/+]*$/.test(toolCallId)
    ? toolCallId
    : `use+${toolCallId.replace(/[^\w.-]/g, (unit) => `%${unit.charCodeAt(0).toString(16)}`)}`;
