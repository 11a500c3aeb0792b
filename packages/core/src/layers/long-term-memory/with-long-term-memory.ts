import type { AgentOptions } from '../../agent.js';
import { withOwnTools } from '../select-tools.js';
import { appended$ } from '../../values/memory.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import {
  checkOptions,
  defined,
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
import type { Layer, LayerContext } from '../../seams/layer.js';
import type { Context } from '../../seams/context.js';
import { phase, type PhaseFactory } from '../../seams/phase.js';
import { reasoning } from '../../phases/reasoning.js';
import type { InputSchema } from '../../values/schema.js';
import { toolSummary, memoriesOfCall, findMemories$ } from './memories-of-call.js';
import type { LongTermMemoryOptions, MemorySettings, ScopeOfCall } from './memory-settings.js';
import { isAgentic, isStatic, scopeOfCall, userOfCall } from './memory-settings.js';
import { memoryTools, memoryToolNames, retrieveMemoryName } from './memory-tools.js';
import { map, of, concatMap, catchError, defer } from 'rxjs';
import { consult$, type ConsultNeeds, consultInCall$ } from '../../phases/consult.js';
import { section, taskOf } from '../../models/prompt.js';
import { type Message, textBlock, textOf, type UserMessage } from '../../values/message.js';
import { type Plan, planKey } from '../planning/plan-state.js';
import { note, type OpenRun, outcome, runKey, spend } from '../../run.js';
import { rankMemories, recalledTitle, writtenMemories } from './written-memories.js';
import type { RecalledMemory, MemoryScope, MemoryEntry } from './long-term-memory.js';
import { messageOf } from '../../values/errors.js';
import { isArrayOf, isString } from '../../values/shape.js';
import { recorded$ } from './memory-access.js';
import type { CallInfo } from '../../values/reply.js';
import { valueOf } from '../../tools/context-key.js';
import { throughMemory } from '../../memories/window-memory.js';
import { usesIn } from '../../memories/suspend.js';

/**
 * An agent that remembers its users from one session to the next: `createAgent(withLongTermMemory({ model, tools }, { memory }))`, called with `{ metadata: {
 * userId } }`. In the mode `static` each call is shown what may help with what was asked, before the history or the input, and what was said, answered and found by tools is
 * recorded at its end, unless it was interrupted or stopped. In the mode `agent` the model has the tools `record_memory` and `retrieve_memory`. In `both` it has
 * both. What is recalled is quoted, is never stored with the conversation, and never recorded anew. A memory that fails or takes too long is a `warning`, and the call goes on.
 */
export const withLongTermMemory = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: LongTermMemoryOptions,
): AgentOptions<Output> => {
  checkOptions('withLongTermMemory()', settings, rules, ['memory']);
  const whole: MemorySettings = { ...defaults, ...defined(settings), memory: settings.memory };
  const remembering = withLayers(options, whole);
  return isAgentic(whole) ? withMemoryTools(remembering, whole) : remembering;
};

const defaults: Omit<MemorySettings, 'memory'> = {
  mode: 'static',
  scope: userOfCall,
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

/** Each memory of an agent has steps of its own in the journal. */
const withLayers = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  settings: MemorySettings,
): AgentOptions<Output> => {
  const { use = [] } = options;
  const nth = use.flat().filter(({ name }) => name === recallLayer).length;
  const place = (name: string): string => (nth === 0 ? name : `${name}/${nth + 1}`);
  const recalls = place('recallMemories');
  const scopeIn = scopeInCall(settings.scope);
  const shown = createShownMemories();
  const recalling = recallMemories(settings, scopeIn, shown, recalls);
  if (!isStatic(settings)) return { ...options, use: [...use, recalling] };
  const recording = recordMemories(settings, scopeIn, place('recordMemories'));
  const inTurns = settings.recallForSteps
    ? [recallingSteps(recallForStep(settings, scopeIn, shown, recalls))]
    : [];
  return { ...options, use: [...use, recalling, recording, ...inTurns] };
};

const recallingSteps = (recalling: PhaseFactory): Layer => ({
  name: 'recallForSteps',
  turn: (phases) =>
    phases.includes(reasoning) ? insertBefore(reasoning, recalling).turn(phases) : phases,
});

const withMemoryTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  settings: MemorySettings,
): AgentOptions<Output> => {
  const remembering = withOwnTools(options, memoryTools(settings));
  return {
    ...remembering,
    use: [...(remembering.use ?? []), throughMemory('withoutRecalled', withoutRecalled)],
  };
};

const rules: Readonly<Record<keyof LongTermMemoryOptions, Rule>> = {
  memory: [
    (value) => ['record$', 'recall$', 'forget$'].every((method) => having(method, '')[0](value)),
    'a LongTermMemory, such as inProcessLongTermMemory() makes',
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
    'a function that gives a text of a run, or false',
  ],
  forgetTool: isFlag,
};

type Needs = ConsultNeeds & Pick<Context, 'interruption' | 'values'>;

/** Makes a phase, to be put before `reasoning`, that recalls anew when another step of the plan is in progress: what may help with it, and is not shown already, is shown until the next one is, and never stored. */
const recallForStep = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  name: string,
): PhaseFactory => {
  const latest = runKey<string>(`${name}/step`, '');
  const title = name.includes('/') ? `${titleOfStep} ${name.split('/').at(-1) ?? ''}` : titleOfStep;
  const recalling = (context: Needs) =>
    phase((run) => {
      const step = stepInProgress(planKey.of(run));
      if (step === latest.of(run)) return of(run);
      const begun = latest.set(run, step);
      if (step === '') return of(note(begun, title, ''));
      if (context.interruption.current !== undefined) return of(run);
      const scope = scopeIn(context);
      if (scope === undefined) return of(begun);
      return findMemories$(settings, context, {
        scope,
        position: `${run.iteration}/${name}`,
        iteration: run.iteration,
        known: shown.of(context.call),
        text: () => step,
        aim: () => ({ goal: askedIn(run, context), subGoal: step }),
        consult$: (asked) => consult$(context, run, asked),
      }).pipe(
        map(({ memories, usage }) => {
          const told = note(begun, title, writtenMemories(memories));
          return usage === undefined ? told : spend(told, usage, rankMemories);
        }),
      );
    });
  return recalling;
};

const titleOfStep = `${recalledTitle} for the Step in Progress`;

const stepInProgress = (plan: Plan | undefined): string =>
  (plan?.steps ?? [])
    .filter(({ status }) => status === 'in progress')
    .map(({ title }) => title)
    .join('\n');

const askedIn = ({ messages }: OpenRun, { call }: Needs): string => {
  const isTask = taskOf(messages, call.callId);
  return messages
    .filter((message: Message) => message.role === 'user' && isTask(message))
    .map(textOf)
    .join('\n');
};

/** Makes the layer that recalls what may help with what was asked, and shows it, once other layers have found out what is meant. A call of which nobody says whose it is has no memory, and no tools for one. */
const recallMemories = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  position: string,
): Layer => ({
  name: recallLayer,
  priority: 85,
  call: (context) => (next) => (call) => {
    if (!isOpen(call)) return next(call);
    const scope = scopeIn(context);
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
        shown.add(context.call, memories);
        const told = withRecalled(settings, call, context, memories);
        return next(usage === undefined ? told : charge(told, rankMemories, usage));
      }),
    );
  },
});

const recallLayer = 'recallMemories';

const withRecalled = (
  { placement }: MemorySettings,
  call: Call,
  { call: { callId } }: Pick<LayerContext, 'call'>,
  memories: readonly RecalledMemory[],
): Call => {
  if (memories.length === 0) return call;
  const text = section(recalledTitle, writtenMemories(memories)) ?? '';
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
  priority: 58,
  call: (context) => (next) => (asked) =>
    next(asked).pipe(
      concatMap((reply) => {
        const { call, perform, hooks, scheduler, local } = context;
        const { memory, timeoutMs } = settings;
        const scope = asked.status === 'prepared' ? scopeIn(context) : undefined;
        if (scope === undefined) return of(reply);
        return perform({
          kind: 'memory',
          id: position,
          input: reply,
          run: () =>
            defer(() => {
              const { run } = local(outcome);
              const memories = memoriesOfCall(call, asked.input, run, reply, settings);
              return memories.length === 0
                ? of([])
                : recorded$({ memory, scope, scheduler, timeoutMs }, memories);
            }).pipe(
              map((entries) => entries.map(({ id }) => id)),
              catchError((error: unknown) => {
                const message = `What came of the call could not be recorded: ${messageOf(error)}`;
                hooks.report(reply.iterations, { type: 'warning', message });
                return of([]);
              }),
            ),
          form: { isWritten: isArrayOf(isString) },
        }).pipe(map(() => reply));
      }),
    ),
});

/** Whose memory a call has; of nobody's, a `warning` says why. */
type ScopeInCall = (context: Pick<Context, 'call' | 'hooks' | 'values'>) => MemoryScope | undefined;

const scopeInCall = (scopeOf: ScopeOfCall): ScopeInCall => {
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

/** What calls have been shown of a memory before their loops, so that it is not shown again. */
interface ShownMemories {
  of(call: CallInfo): readonly MemoryEntry[];
  add(call: CallInfo, memories: readonly MemoryEntry[]): void;
}

/** Remembers what each call has been shown, for as long as the call lasts. */
const createShownMemories = (): ShownMemories => {
  const shown = new WeakMap<CallInfo, readonly MemoryEntry[]>();
  const of = (call: CallInfo): readonly MemoryEntry[] => shown.get(call) ?? [];
  return { of, add: (call, memories) => void shown.set(call, [...of(call), ...memories]) };
};

/** Makes memories that keep that something was recalled by a tool, and not what: it is remembered already, and may change or be forgotten. */
const withoutRecalled =
  (inner: MemoryFactory): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => memory.load$(),
      append$: (messages, hasFailed) =>
        defer(() => appended$(memory, stripped(messages), hasFailed)),
    };
  };

const notKept = '[What was recalled is not kept here. Retrieve it again where it is needed.]';

const stripped = (messages: readonly Message[]): readonly Message[] => {
  const uses = usesIn(messages);
  return messages.map((message) =>
    message.role === 'tool'
      ? {
          ...message,
          content: message.content.map((result) =>
            uses.get(result.toolUseId)?.name === retrieveMemoryName && !result.isError
              ? { ...result, content: [textBlock(notKept)] }
              : result,
          ),
        }
      : message,
  );
};
