import { isObservable, Observable } from 'rxjs';
import { hearContained } from '../flow/contained.js';
import { atOnce, type Eventual } from '../flow/eventual.js';
import type { CallInfo } from '../values/reply.js';
import type { ToolOutput } from '../values/tool-output.js';
import { misuse } from '../values/errors.js';
import type { LazyAbort } from '../flow/lazy-abort.js';
import type { OpenRun } from '../run.js';
import { valueOf } from '../tools/context-key.js';
import { liveToolkit } from '../tools/toolkit.js';
import type { ToolContext } from '../tools/types.js';
import { randomId, scopeOf, sharing, type ToolScope } from './call-scope.js';
import type { LoopCall } from './call.js';
import type { Context } from './layer.js';
import { cell } from '../step.js';
import { addSpending, type CostBelow, costBelow, noSpending, type Spending } from './spending.js';

/** Makes the idempotency keys of a family of calls unique, even if ids are reused. */
export const keySeed = cell('family', () => ({ id: `/${randomId()}` }));

/** The calls that may wait for a call with this parent; without one, for a call that starts now. */
export const waitersFor = (parent: ToolContext | undefined): readonly CallInfo[] =>
  (parent === undefined ? starting : toolScopeOf(parent).scope)?.waiters ?? [];

/** The call whose tool is being started, in this very moment: it may wait for what starts. What starts later is not known. */
let starting: Pick<ToolScope['scope'], 'waiters'> | undefined;

const during = <T>(call: typeof starting, work: () => T): T => {
  const before = starting;
  starting = call;
  try {
    return work();
  } finally {
    starting = before;
  }
};

/** Starts a tool, and takes in what it emits, which is outside of it. */
export const startTool = <T>(context: ToolContext, make: () => Observable<T>): Eventual<T> => {
  const { scope } = toolScopeOf(context);
  const started = during(scope, () => atOnce(make()));
  if (!isObservable(started)) return started;
  return new Observable((to) => {
    const outer = starting;
    during(scope, () => {
      hearContained(
        started,
        {
          next: (value) => during(outer, () => to.next(value)),
          error: (cause: unknown) => during(outer, () => to.error(cause)),
          complete: () => during(outer, () => to.complete()),
        },
        to,
      );
    });
  });
};

/** The receiver of a tool context: the tool call, its step, and the purpose if it is not the run itself. */
export interface Lending {
  readonly toolCallId: string;
  readonly stepId: string;
  readonly purpose?: string | undefined;
  /** The name of a tool that cannot run again to continue its calls. */
  readonly unmarked?: string | undefined;
  /** Calls made with it speak for this call. */
  readonly speaks?: boolean;
}

/** Creates the context of a tool call. Calls with it as `parent` belong to this scope. */
export const toolContext = (
  context: Pick<Context, 'info' | 'demand' | 'local' | 'scheduler'>,
  { toolkit, values }: Pick<LoopCall, 'toolkit' | 'values'>,
  { toolCallId, stepId, purpose, unmarked, speaks = false }: Lending,
  { iteration, messages, kept }: Pick<OpenRun, 'iteration' | 'messages' | 'kept'>,
  abort: Pick<LazyAbort, 'signal'>,
  /** Whether the tool call has ended, so that no call may start. */
  isOver: () => boolean = () => false,
): ToolContext => {
  const { info: call, demand, local, scheduler } = context;
  const { callId, agent, metadata } = call;
  const scope = scopeOf(context);
  const own: Omit<ToolContext, 'signal'> & Aborting = {
    [aborting]: abort,
    ...scope.labels,
    callId,
    toolCallId,
    idempotencyKey: `${callId}/${toolCallId}${local(keySeed).id}`,
    agent,
    metadata,
    iteration,
    messages,
    kept,
    demand,
    scheduler,
    toolkit: liveToolkit(toolkit),
    get: (key) => valueOf(key, values),
  };
  const lent: ToolContext = sharing(own, 'signal', signalOf);
  // Calls of deciders have other ids than those of the run: a resumed call may skip the decision.
  const prefix = `${callId}/${idPartOf(toolCallId)}${purpose === undefined ? '' : `+${purpose}`}`;
  const callIds = { prefix, count: 0 };
  const below = { spent: noSpending, base: prefix, unmarked, above: scope.parentTool?.below };
  scopes.set(lent, { scope, values, stepId, isOver, below, callIds, speaks });
  return lent;
};

/** The key of the abort in a context. Copies and proxies of the context have it, too. */
const aborting = Symbol('abort');

interface Aborting {
  readonly [aborting]: Pick<LazyAbort, 'signal'>;
}

function signalOf(this: Aborting): AbortSignal {
  return this[aborting].signal;
}

/** Creates contexts for parallel branches of a tool call: calls of each branch get their own, reproducible ids. */
export const forkToolContext = (context: ToolContext, ways: number): readonly ToolContext[] => {
  const { callIds } = toolScopeOf(context);
  callIds.count += 1;
  return Array.from({ length: ways }, (_, way) => {
    const prefix = `${callIds.prefix}+${callIds.count}.${way + 1}`;
    return elsewhere(context, { callIds: { prefix, count: 0 } });
  });
};

const elsewhere = (
  context: ToolContext,
  change: Partial<Pick<ToolScope, 'callIds' | 'speaks'>>,
): ToolContext => {
  // A proxy: equal in all fields, with its own identity.
  const own = new Proxy(context, {});
  scopes.set(own, { ...toolScopeOf(context), ...change });
  return own;
};

const heard = <Options extends { readonly parent?: ToolContext | undefined }>(
  options: Options,
  speaks: boolean,
): Options => {
  const { parent } = options;
  if (parent === undefined || toolScopeOf(parent).speaks === speaks) return options;
  return { ...options, parent: elsewhere(parent, { speaks }) };
};

/** Returns options for calls that speak for their parent: `text()` and UIs show their text as the answer. */
export const speaking = <Options extends { readonly parent?: ToolContext | undefined }>(
  options: Options,
): Options => heard(options, true);

/** Returns options for calls whose text is not shown as the answer. */
export const silent = <Options extends { readonly parent?: ToolContext | undefined }>(
  options: Options,
): Options => heard(options, false);

export const nextCallId = ({ callIds }: ToolScope): string => {
  callIds.count += 1;
  // No step position has a plus, so positions of the second call differ from the first one's.
  return callIds.count === 1 ? callIds.prefix : `${callIds.prefix}+${callIds.count}`;
};

export const spendBelow = ({ below, scope }: ToolScope, spending: Spending): void => {
  below.spent = addSpending(below.spent, spending);
  if (scope.parentTool !== undefined) spendBelow(scope.parentTool, spending);
};

export const spentBelow = (context: ToolContext): CostBelow =>
  costBelow(toolScopeOf(context).below.spent);

/** The output of a tool call if its calls override it. Throws the fatal error of one: it must not be recorded. */
export const outputBelow = (context: ToolContext): ToolOutput | undefined => {
  const { halt, output } = toolScopeOf(context).below;
  if (halt) throw halt;
  return output?.();
};

const scopes = new WeakMap<ToolContext, ToolScope>();

export const toolScopeOf = (context: ToolContext): ToolScope => {
  const scope = scopes.get(context);
  if (scope) return scope;
  throw misuse("'parent' must be the context of a tool's run, not a copy.");
};

/** The tool call's part of the ids of its calls. Models choose these ids: escaped, they differ from step positions. */
export const idPartOf = (toolCallId: string): string =>
  /^[^\d/+][^/+]*$/.test(toolCallId)
    ? toolCallId
    : `use+${toolCallId.replace(/[^\w.-]/g, (unit) => `%${unit.charCodeAt(0).toString(16)}`)}`;
