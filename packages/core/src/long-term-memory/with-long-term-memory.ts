import type { AgentOptions } from '../agent-options.js';
import { inProcessMemory } from '../memory.js';
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
} from '../options.js';
import { questionOf } from '../call/call.js';
import { insertBefore } from '../phase-list.js';
import type { Layer } from '../layer.js';
import type { PhaseFactory } from '../phase.js';
import { reasoning } from '../phases/reasoning.js';
import type { InputSchema } from '../schema.js';
import { withOwnTools } from '../with-own-tools.js';
import { toolSummary } from './memories-of-call.js';
import {
  isAgentic,
  isStatic,
  type LongTermMemoryOptions,
  type MemorySettings,
} from './memory-settings.js';
import { memoryTools } from './memory-tools.js';
import { recallForStep } from './recall-for-step.js';
import { recallLayer, recallMemories } from './recall-memories.js';
import { recordMemories } from './record-memories.js';
import { scopeInCall } from './scope-in-call.js';
import { userOfCall } from './scope-of-call.js';
import { createShownMemories } from './shown-memories.js';
import { withoutRecalled } from './without-recalled.js';

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

/** An agent that is made of steps has no turns to recall in. */
const recallingSteps = (recalling: PhaseFactory): Layer => ({
  name: 'recallForSteps',
  turn: (phases) =>
    phases.includes(reasoning) ? insertBefore(reasoning, recalling).turn(phases) : phases,
});

const withMemoryTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  settings: MemorySettings,
): AgentOptions<Output> => ({
  ...withOwnTools(options, memoryTools(settings)),
  memory: withoutRecalled(options.memory ?? inProcessMemory()),
});

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
