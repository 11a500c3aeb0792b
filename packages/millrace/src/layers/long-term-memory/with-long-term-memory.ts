import { withOwnTools } from '../select-tools.js';
import { appended$ } from '../../values/memory.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import { defined } from '../../values/json.js';
import {
  checkOptions,
  having,
  isDelay,
  isFlag,
  isFunction,
  oneOf,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import {
  type Call,
  charge,
  hideTools,
  isOpen,
  questionOf,
  recall,
  recallBeforeInput,
} from '../../seams/call.js';
import { insertBefore } from '../../phases/phase-list.js';
import type { Layer, Context, PhaseFactory } from '../../seams/layer.js';
import { phase } from '../../seams/phase.js';
import { reasoning } from '../../phases/reasoning.js';
import type { InputSchema } from '../../values/schema.js';
import { toolSummary, memoriesOfCall$, summarising, findMemories$ } from './memories-of-call.js';
import type { LongTermMemoryOptions, MemorySettings, ScopeOfCall } from './memory-settings.js';
import { isAgentic, isStatic, scopeOfCall, scopeOfUser } from './memory-settings.js';
import { memoryTools, memoryToolNames, retrieveMemoryName } from './memory-tools.js';
import { map, of, concatMap, catchError, defer } from 'rxjs';
import { consult$, consultInCall$ } from '../../phases/consult.js';
import { section, taskOf } from '../../models/prompt.js';
import { type Message, textBlock, textOf, type UserMessage } from '../../values/message.js';
import { type Plan, planKey } from '../planning/plan-state.js';
import { note, type OpenRun, runKey, spend } from '../../run.js';
import { rankMemories, recalledTitle, formatMemories } from './format-memories.js';
import type { RecalledMemory, MemoryScope, MemoryEntry } from './long-term-memory.js';
import { messageOf } from '../../values/errors.js';
import { isArrayOf, isString } from '../../values/shape.js';
import { recordIn$ } from './memory-access.js';
import type { CallInfo } from '../../values/reply.js';
import { valueOf } from '../../tools/context-key.js';
import { wholeOf, wrapMemory } from '../../memories/window-memory.js';
import { usesIn } from '../../memories/suspend.js';
import { layerPlaces } from '../../seams/layer-places.js';
import type { AgentOptions } from '../../call/agent-options.js';
import { callProgress } from '../../seams/progress.js';

/**
 * Adds long-term memory to an agent: `createAgent(withLongTermMemory({ model, tools }, { memory }))`, called with `{
 * metadata: { userId } }`. In mode `static`, each call shows the model relevant memories, and its question, answer and
 * tool calls are recorded at its end, unless it was interrupted or stopped. In mode `agent`, the model has the tools
 * `record_memory` and `retrieve_memory`. `both` combines them. Recalled memories are quoted, never stored with the
 * conversation and never recorded again. A memory that fails or times out is a `warning`.
 */
export const withLongTermMemory = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: LongTermMemoryOptions,
): AgentOptions<Output> => {
  checkOptions('withLongTermMemory()', settings, rules, ['memory']);
  const complete: MemorySettings = { ...defaults, ...defined(settings), memory: settings.memory };
  const withMemory = withLayers(options, complete);
  return isAgentic(complete) ? withMemoryTools(withMemory, complete) : withMemory;
};

const defaults: Omit<MemorySettings, 'memory'> = {
  mode: 'static',
  scope: scopeOfUser,
  top: 3,
  rank: false,
  candidates: 10,
  recallForSteps: true,
  placement: 'beforeHistory',
  query: questionOf,
  timeoutMs: 5_000,
  summariseTool: toolSummary,
  forgetTool: false,
};

/** Each memory of an agent has journal steps of its own. */
const withLayers = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  settings: MemorySettings,
): AgentOptions<Output> => {
  const { use = [] } = options;
  const index = use.flat().filter(({ name }) => name === recallLayer).length;
  const numbered = (name: string): string => (index === 0 ? name : `${name}/${index + 1}`);
  const position = numbered('recallMemories');
  const scopeOf = scopeInCall(settings.scope);
  const shownMemories = createShownMemories();
  const recallLayers = recallMemories(settings, scopeOf, shownMemories, position);
  if (!isStatic(settings)) return { ...options, use: [...use, recallLayers] };
  const recordLayer = recordMemories(settings, scopeOf, numbered('recordMemories'));
  const stepLayers = settings.recallForSteps
    ? [recallBeforeReasoning(recallForStep(settings, scopeOf, shownMemories, position))]
    : [];
  return { ...options, use: [...use, recallLayers, recordLayer, ...stepLayers] };
};

const recallBeforeReasoning = (recallPhase: PhaseFactory): Layer => ({
  name: 'recallForSteps',
  turn: (phases) =>
    phases.includes(reasoning) ? insertBefore(reasoning, recallPhase).turn(phases) : phases,
});

const withMemoryTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  settings: MemorySettings,
): AgentOptions<Output> => {
  const withTools = withOwnTools(options, memoryTools(settings));
  return {
    ...withTools,
    use: [...(withTools.use ?? []), wrapMemory('withoutRecalled', withoutRecalled)],
  };
};

const rules: Readonly<Record<keyof LongTermMemoryOptions, Rule>> = {
  memory: [
    (value) => ['record$', 'recall$', 'forget$'].every((method) => having(method, '')[0](value)),
    'a LongTermMemory, such as inProcessLongTermMemory()',
  ],
  mode: oneOf('static', 'agent', 'both'),
  scope: isFunction,
  top: wholeNumber(1),
  rank: isFlag,
  candidates: wholeNumber(1),
  recallForSteps: isFlag,
  placement: oneOf('beforeHistory', 'beforeInput'),
  query: isFunction,
  timeoutMs: isDelay,
  summariseTool: [
    (value) => value === false || typeof value === 'function',
    'a function that returns a string, an Observable or a Promise, or false',
  ],
  forgetTool: isFlag,
};

/** Before `reasoning`, recalls for a new step of the plan. Shown until the next step, never stored. */
const recallForStep = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  name: string,
): PhaseFactory => {
  const latest = runKey<string>(`${name}/step`, '');
  const title = name.includes('/') ? `${titleOfStep} ${name.split('/').at(-1) ?? ''}` : titleOfStep;
  const recallStep: PhaseFactory = (context, call) =>
    phase((run) => {
      const step = stepInProgress(planKey.of(run));
      if (step === latest.of(run)) return of(run);
      const started = latest.set(run, step);
      if (step === '') return of(note(started, title, ''));
      if (context.interruption.current !== undefined) return of(run);
      const scope = scopeIn(context, call);
      if (scope === undefined) return of(started);
      return findMemories$(settings, context, {
        scope,
        position: `${run.iteration}/${name}`,
        iteration: run.iteration,
        known: shown.of(context.info),
        text: () => step,
        aim: () => ({ goal: taskText(run, context), subGoal: step }),
        consult$: (asked) => consult$(context, call, run, asked),
      }).pipe(
        map(({ memories, usage }) => {
          const withNote = note(started, title, formatMemories(memories));
          return usage === undefined ? withNote : spend(withNote, usage, rankMemories);
        }),
      );
    });
  return recallStep;
};

const titleOfStep = `${recalledTitle} for the Step in Progress`;

const stepInProgress = (plan: Plan | undefined): string =>
  (plan?.steps ?? [])
    .filter(({ status }) => status === 'in progress')
    .map(({ title }) => title)
    .join('\n');

const taskText = ({ messages }: OpenRun, { info: call }: Pick<Context, 'info'>): string => {
  const isTask = taskOf(messages, call.callId);
  return messages
    .filter((message: Message) => message.role === 'user' && isTask(message))
    .map(textOf)
    .join('\n');
};

/** Recalls memories for the resolved question. A call without a user has no memory and no memory tools. */
const recallMemories = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  position: string,
): Layer => ({
  name: recallLayer,
  priority: layerPlaces.recall,
  call: (context) => (next) => (call) => {
    if (!isOpen(call)) return next(call);
    const scope = scopeIn(context, call);
    if (scope === undefined) return next(hideTools(call, ...memoryToolNames));
    if (!isStatic(settings)) return next(call);
    return findMemories$(settings, context, {
      scope,
      position,
      known: [],
      iteration: 0,
      text: () => settings.query(call),
      aim: () => ({ goal: questionOf(call) }),
      consult$: (asked) => consultInCall$(context, call, asked),
    }).pipe(
      concatMap(({ memories, usage }) => {
        shown.add(context.info, memories);
        const withMemories = withRecalled(settings, call, context, memories);
        return next(usage === undefined ? withMemories : charge(withMemories, rankMemories, usage));
      }),
    );
  },
});

const recallLayer = 'recallMemories';

const withRecalled = (
  { placement }: MemorySettings,
  call: Call,
  { info: { callId } }: Pick<Context, 'info'>,
  memories: readonly RecalledMemory[],
): Call => {
  if (memories.length === 0) return call;
  const text = section(recalledTitle, formatMemories(memories)) ?? '';
  const message: UserMessage = {
    id: `${callId}/recalled/${call.recalled.length}`,
    role: 'user',
    content: [textBlock(text)],
  };
  return placement === 'beforeInput' ? recallBeforeInput(call, message) : recall(call, message);
};

const recordMemories = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  position: string,
): Layer => ({
  name: 'recordMemories',
  priority: layerPlaces.recordMemories,
  call: (context) => (next) => (prepared) =>
    next(prepared).pipe(
      concatMap((reply) => {
        const { info: call, perform, hooks, scheduler, local } = context;
        const { memory, timeoutMs } = settings;
        const scope = prepared.status === 'prepared' ? scopeIn(context, prepared) : undefined;
        if (scope === undefined) return of(reply);
        return perform({
          kind: 'memory',
          id: position,
          input: reply,
          run: () =>
            defer(() => {
              const { concluded: run } = local(callProgress);
              const summaryOf$ = summarising(settings, scheduler);
              return memoriesOfCall$(call, prepared.input, run, reply, summaryOf$);
            }).pipe(
              concatMap((memories) =>
                memories.length === 0
                  ? of([])
                  : recordIn$({ memory, scope, scheduler, timeoutMs }, memories),
              ),
              map((entries) => entries.map(({ id }) => id)),
              catchError((error: unknown) => {
                const message = `Recording the call failed: ${messageOf(error)}`;
                hooks.report(reply.iterations, { type: 'warning', message });
                return of([]);
              }),
            ),
          form: { isWritten: isArrayOf(isString) },
        }).pipe(map(() => reply));
      }),
    ),
});

/** The scope of a call; undefined, with a `warning`, if there is no user. */
type ScopeInCall = (
  context: Pick<Context, 'hooks' | 'info'>,
  call: Pick<Call, 'values'>,
) => MemoryScope | undefined;

const scopeInCall = (scopeOf: ScopeOfCall): ScopeInCall => {
  const scopes = new WeakMap<CallInfo, { readonly scope: MemoryScope | undefined }>();
  return (context, call) => {
    const { info } = context;
    const entry = scopes.get(info) ?? { scope: resolveScope(scopeOf, context, call) };
    scopes.set(info, entry);
    return entry.scope;
  };
};

const resolveScope = (
  scopeOf: ScopeOfCall,
  { info, hooks }: Parameters<ScopeInCall>[0],
  { values }: Parameters<ScopeInCall>[1],
): MemoryScope | undefined => {
  try {
    const { callId, sessionId, agent, metadata } = info;
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

interface ShownMemories {
  of(call: CallInfo): readonly MemoryEntry[];
  add(call: CallInfo, memories: readonly MemoryEntry[]): void;
}

/** Entries that each call has shown before its loop, for the lifetime of the call. */
const createShownMemories = (): ShownMemories => {
  const byCall = new WeakMap<CallInfo, readonly MemoryEntry[]>();
  const entriesOf = (call: CallInfo): readonly MemoryEntry[] => byCall.get(call) ?? [];
  return {
    of: entriesOf,
    add: (call, memories) => void byCall.set(call, [...entriesOf(call), ...memories]),
  };
};

/** Stores that memories were recalled, but not which: they are in long-term memory, and may change there. */
const withoutRecalled =
  (inner: MemoryFactory): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      ...wholeOf(memory),
      load$: (options) => memory.load$(options),
      append$: (messages, options) =>
        defer(() => appended$(memory, withoutResults(messages), options)),
    };
  };

const placeholder = '[Recalled memories are not stored here. Retrieve them again if needed.]';

const withoutResults = (messages: readonly Message[]): readonly Message[] => {
  const uses = usesIn(messages);
  return messages.map((message) =>
    message.role === 'tool'
      ? {
          ...message,
          content: message.content.map((result) =>
            uses.get(result.toolCallId)?.name === retrieveMemoryName && !result.isError
              ? { ...result, content: [textBlock(placeholder)] }
              : result,
          ),
        }
      : message,
  );
};
