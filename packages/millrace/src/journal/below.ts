import {
  type MonoTypeOperatorFunction,
  filter,
  identity,
  map,
  type Observable,
  of,
  tap,
} from 'rxjs';
import { assertAwaited, assertCallsAgents, noteContinued } from '../memories/changed-agents.js';
import {
  checked$,
  continuing,
  remembering,
  suspendBelow,
  suspensionId,
  waitingIn,
} from '../memories/suspend.js';
import type { Context } from '../seams/layer.js';
import type { Below } from '../seams/spending.js';
import { recorded } from '../memories/recorded.js';
import { cell } from '../step.js';
import type { CallOfTool, Tool } from '../tools/types.js';
import { misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { ToolCallBlock, ToolResultBlock } from '../values/message.js';
import type { CallInfo, Reply } from '../values/reply.js';
import { isToolResult, isUsage } from '../values/shape.js';
import { later, toolOutput, type ToolOutput } from '../values/tool-output.js';
import { noUsage } from '../values/usage.js';
import type { OpenJournal } from './call-store-driver.js';
import { renamed, renamedId } from './forked-records.js';
import { lineageOf, parentToolOf } from '../seams/call-scope.js';
import { callProgress } from '../seams/progress.js';

/** Keeps the steps of the calls below a tool call, and replays those of an earlier call. */
export const continuedBelow = (journal: OpenJournal, context: Context): OpenJournal => {
  const { info, layers, local } = context;
  const above = parentToolOf(context);
  // The calls below have the journal of their parent.
  if (!above || lineageOf(info).length > 2 || !layers.includes(suspendBelow)) return journal;
  const known = stepsBefore(context);
  const kept = local(keptSteps).get(above.below) ?? new Map<string, unknown>();
  local(keptSteps).set(above.below, kept);
  const { isWritten, stepIds } = journal;
  return {
    ...journal,
    step$: (id, work) =>
      journal
        .step$(id, () => (known.has(id) ? of(known.get(id)) : work()))
        .pipe(tap((written) => kept.set(id, written))),
    ...(isWritten && { isWritten: (id) => known.has(id) || isWritten(id) }),
    ...(stepIds && { stepIds: () => [...known.keys(), ...stepIds()] }),
  };
};

/** The steps below each tool call of the root call, by what its contexts share; and those of earlier calls. */
const keptSteps = cell('family', () => new WeakMap<object, Map<string, unknown>>());
const before = cell('family', (): Before => ({}));

interface Before {
  steps?: ReadonlyMap<string, unknown>;
  /** The outputs of tools that waited themselves. Without a result, they wait on. */
  waiting?: ReadonlyMap<string, ToolOutput>;
  /** The steps of tools whose calls waited. */
  callers?: ReadonlySet<string>;
}

/** The steps of earlier calls that this one continues, by their positions here. */
const stepsBefore = ({ info: call, local }: Pick<Context, 'info' | 'local'>) => {
  const known = local(before);
  if (known.steps !== undefined) return known.steps;
  const all = local(continuing).tools.flatMap(({ result: { suspended } }) => {
    const { rootId = '', steps = {} } = suspended?.below ?? {};
    const ids = [rootId, call.rootId] as const;
    return Object.entries(steps).map(
      ([id, value]) => [renamedId(id, ...ids), renamed(value, ...ids)] as const,
    );
  });
  known.waiting = new Map(all.flatMap(([id, value]) => waitingOutput(value).map((it) => [id, it])));
  const waits = all.filter(([, value]) => isWaiting(value)).map(([id]) => id);
  known.callers = new Set(waits.filter((id) => known.waiting?.has(id) === false));
  noteContinued(local, {
    all: all.map(([id]) => id),
    waiting: waits,
    asking: known.waiting.keys(),
  });
  return (known.steps = new Map(
    all.flatMap(([id, value]) => (isWaiting(value) ? [] : [[id, paid(value)]])),
  ));
};

const waitingOutput = (value: unknown): readonly ToolOutput[] => {
  const result = isRecord(value) ? value['result'] : undefined;
  if (!isToolResult(result)) return [];
  const { content, isError, suspended } = result;
  if (suspended === undefined || suspended.below !== undefined) return [];
  return [toolOutput({ content, isError, suspended })];
};

/** A step that waits runs again. */
const isWaiting = (value: unknown): boolean =>
  isRecord(value) &&
  (value['reason'] === 'suspended' ||
    (isRecord(value['result']) && value['result']['suspended'] !== undefined));

/** The call that made the request has counted its cost. */
const paid = (value: unknown): unknown =>
  isRecord(value) && isUsage(value['usage'])
    ? { ...value, usage: noUsage, below: undefined }
    : value;

/** The late result of a tool call that waited; none if its calls did, so that it runs again. */
export const waitedIn =
  ({ info: call, local }: Pick<Context, 'info' | 'local'>) =>
  (
    id: string,
    { id: toolCallId, name, suspends }: ToolCallBlock,
    tool: Pick<Tool, 'callsAgents' | 'result$'> | undefined,
  ): { readonly output?: ToolOutput; readonly checked$?: Observable<ToolOutput> } | undefined => {
    if (call.parentId === undefined) return undefined;
    const result = local(continuing).results.get(suspensionId(call, toolCallId));
    if (result !== undefined) {
      if (suspends === undefined) assertAwaited(name, tool);
      return {
        output: outputIn(result),
        ...(result.from === 'client' && { checked$: checked$(tool, result).pipe(map(outputIn)) }),
      };
    }
    const { steps, waiting, callers } = local(before);
    const output = waiting?.get(`${call.callId}/${id}`);
    if (output !== undefined) return { output };
    if (callers?.has(`${call.callId}/${id}`) === true) assertCallsAgents(name, tool);
    return steps?.has(`${call.callId}/${id}/intent`) === true ? {} : undefined;
  };

const outputIn = ({ content, isError, details }: ToolResultBlock): ToolOutput =>
  toolOutput({ content, isError, details });

const withheld = cell('call', () => ({ isWaiting: false }));

/** Reports the suspended tool calls of a call to the tool that made it. */
export const reportingAbove = (context: Context): MonoTypeOperatorFunction<Reply> => {
  const { info, hooks, layers, local } = context;
  const above = parentToolOf(context);
  const [root, ...inner] = lineageOf(info);
  if (!above || !root || !layers.includes(suspendBelow)) return identity;
  return tap(({ reason }) => {
    const { concluded: run } = local(callProgress);
    const has = ({ callId }: CallInfo): boolean => local(remembering).has(callId);
    if (reason !== 'suspended' || run === undefined || !has(root) || inner.some(has)) return;
    const unmarked = unmarkedAbove(above.below);
    if (unmarked !== undefined) {
      const message = `The tool '${unmarked}' called an agent that waits, and cannot run again to continue it: set 'callsAgents: true' on the tool.`;
      hooks.report(hooks.iteration(), { type: 'warning', message });
      return;
    }
    local(withheld).isWaiting = true;
    const { output } = above.below;
    const stillWaiting = output?.().suspended?.below?.waiting ?? [];
    const waiting = [...stillWaiting, ...waitingIn(run, info)];
    above.below.output = () => {
      const steps = Object.fromEntries(local(keptSteps).get(above.below) ?? []);
      const below = { rootId: root.callId, waiting, steps };
      return toolOutput({ content: later, suspended: { request: null, from: 'program', below } });
    };
  });
};

/** Throws a `config` error, which names the owner, if a suspended call below this one could not suspend it, up to its root. */
export const assertSuspendsBelow = ({ info, layers, local }: CallOfTool, owner: string): void => {
  const [root, ...inner] = lineageOf(info);
  const has = ({ callId }: CallInfo): boolean => local(remembering).has(callId);
  const missing = [
    ...(root !== undefined && has(root) ? [] : ['a session: sessions(agent).open(id)']),
    ...(local(recorded).by === undefined ? ['journal(store)'] : []),
    ...(layers.includes(suspendBelow) ? [] : ['suspendBelow']),
  ];
  if (missing.length > 0) {
    throw misuse(`${owner} needs ${missing.join(' and ')}. Add layers to 'use' of the agent.`);
  }
  const own = inner.find(has);
  if (own !== undefined) {
    throw misuse(
      `${owner} cannot suspend the calls above: the agent '${own.agent.at(-1) ?? ''}' has a memory of its own, below a tool. Call it without a session.`,
    );
  }
  const above = parentToolOf({ local });
  const unmarked = above && unmarkedAbove(above.below);
  if (unmarked !== undefined) {
    throw misuse(
      `${owner} cannot suspend the tool '${unmarked}', which calls its agent: set 'callsAgents: true' on the tool.`,
    );
  }
};

/** The name of the first tool above, at any depth, that cannot run again to continue its calls. */
const unmarkedAbove = ({ unmarked, above }: Below): string | undefined =>
  unmarked ?? (above === undefined ? undefined : unmarkedAbove(above));

/** Emits no suspended reply: the tool that made the call waits, too. */
export const withoutSuspended =
  ({ local }: Pick<Context, 'local'>) =>
  <T>(seen$: Observable<T>): Observable<T> =>
    seen$.pipe(filter((it) => !local(withheld).isWaiting || (isRecord(it) && 'type' in it)));
