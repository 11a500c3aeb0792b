import type { AgentOptions } from '../agent.js';
import type { LongTermMemoryOptions } from '../long-term-memory/memory-settings.js';
import { withLongTermMemory } from '../long-term-memory/with-long-term-memory.js';
import {
  checkOptions,
  defined,
  isFlag,
  isObject,
  oneOf,
  type Rule,
  wholeNumber,
} from '../options.js';
import type { PhaseFactory } from '../phase.js';
import { insertAfter, insertBefore, nativePhases } from '../phase-list.js';
import { acting } from '../phases/acting.js';
import { reasoning } from '../phases/reasoning.js';
import { loadHistory } from '../pipeline/load-history.js';
import { insertStageAfter, nativePipeline } from '../pipeline/native-pipeline.js';
import { analyseTask } from '../planning/analyse-task.js';
import { completeTask } from '../planning/complete-task.js';
import type { PlanningPrompts } from '../planning/planning-prompt.js';
import { isWhen, reflect, type ReflectWhen } from '../planning/reflect.js';
import { rewriteQuestion } from '../planning/rewrite-question.js';
import { synthesize } from '../planning/synthesize.js';
import { withPlan } from '../planning/with-plan.js';
import type { InputSchema } from '../schema.js';
import { type StepsOptions, stepsDialect } from '../text-tools/dialects/steps.js';
import { textTools } from '../text-tools/text-tools.js';

/** What may be otherwise in an agent that plans. */
export interface PlannerOptions {
  /** How the model asks for tools: as a JSON list in its text, for any model (`steps`, the default), or as its vendor has it (`native`). */
  readonly calling?: 'steps' | 'native';
  /** What may be told otherwise of the dialect. */
  readonly dialect?: StepsOptions;
  /** Whether the task is looked at before the first turn: one request. Default: true. */
  readonly analyse?: boolean;
  /** Behind which turns the model reflects, one request each; `false` is none. Default: `always`. */
  readonly reflect?: ReflectWhen | false;
  /** Whether the model keeps a plan, in tools of its own. Default: false. */
  readonly plan?: boolean;
  /** Whether the final answer is always written by a request of its own. Default: only where the model has given none. */
  readonly finalize?: boolean;
  /** Messages of history above which the question is written anew, by one request; `false` is never. Default: 3. */
  readonly rewriteAbove?: number | false;
  /** What it remembers of its users across sessions. The model ranks what is recalled, and sees the best 3, unless that is told otherwise. Default: nothing. */
  readonly longTermMemory?: LongTermMemoryOptions;
  /** Prompts that are told in other words, one by one. */
  readonly prompts?: PlanningPrompts;
}

/**
 * An agent that plans: it looks at its task, takes steps of several tools at once, five at most at the same time, reflects on what they gave, and says that it is done with
 * `complete_task`, whose answer is the answer of the call. 5 rounds and one more, then a closing request. A question that comes late in a conversation is
 * written anew before anything is looked for by it. What the options say goes before that.
 */
export const planner = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlannerOptions = {},
): AgentOptions<Output> => {
  checkOptions('planner()', settings, rules);
  const { calling = 'steps', dialect, finalize = false, prompts = {} } = settings;
  const { plan = false, rewriteAbove = 3 } = settings;
  const tools = [...(options.tools ?? []), completeTask({ finalize })];
  const planned = {
    ...options,
    tools,
    model: calling === 'native' ? options.model : textTools(options.model, stepsDialect(dialect)),
    phases: phasesOf(settings, options.phases),
    pipeline:
      rewriteAbove === false
        ? (options.pipeline ?? nativePipeline)
        : insertStageAfter(
            loadHistory,
            rewriteQuestion({ above: rewriteAbove, ...promptOf(prompts.rewriteQuestion) }),
            options.pipeline,
          ),
    defaults: { maxIterations: 6, parallel: 5, ...defined(options.defaults) },
  };
  const keeping = plan ? withPlan(planned, promptOf(prompts.plan)) : planned;
  const { longTermMemory } = settings;
  return longTermMemory === undefined
    ? keeping
    : withLongTermMemory(keeping, { rank: true, top: 3, ...longTermMemory });
};

/** A task that is done is not reflected on: what writes its answer comes first. */
const phasesOf = (
  { analyse = true, reflect: when = 'always', prompts = {} }: PlannerOptions,
  given: readonly PhaseFactory[] = nativePhases,
): readonly PhaseFactory[] => {
  const thinking =
    when === false
      ? given
      : insertAfter(acting, reflect({ when, ...promptOf(prompts.reflect) }), given);
  const writing = insertAfter(acting, synthesize(promptOf(prompts.synthesize)), thinking);
  return analyse
    ? insertBefore(reasoning, analyseTask(promptOf(prompts.analyseTask)), writing)
    : writing;
};

const promptOf = <Prompt>(prompt: Prompt | undefined): { readonly prompt?: Prompt } =>
  prompt === undefined ? {} : { prompt };

const rules: Readonly<Record<keyof PlannerOptions, Rule>> = {
  calling: oneOf('steps', 'native'),
  dialect: isObject,
  analyse: isFlag,
  reflect: [(value) => value === false || isWhen[0](value), `${isWhen[1]}, or false`],
  plan: isFlag,
  finalize: isFlag,
  rewriteAbove: [
    (value) => value === false || wholeNumber(0)[0](value),
    'a whole number of at least 0, or false',
  ],
  longTermMemory: isObject,
  prompts: isObject,
};
