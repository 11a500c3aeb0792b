import type { AgentOptions } from '../../agent.js';
import { withOwnTools } from '../select-tools.js';
import { withDefaults } from '../../call/call-options.js';
import { misuse } from '../../values/errors.js';
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
  isText,
} from '../../values/options.js';
import { insertAfter, insertBefore } from '../../phases/phase-list.js';
import { acting } from '../../phases/acting.js';
import { reasoning } from '../../phases/reasoning.js';
import type { Layer } from '../../seams/layer.js';
import { analyseTask, isWhen, reflect, type ReflectWhen } from '../planning/thinking-phases.js';
import { completeTask, synthesize } from '../planning/synthesize.js';
import { isPrompt, type PlanningPrompts } from '../planning/planning-options.js';
import { rewriteQuestion } from '../planning/rewrite-question.js';
import { withPlan } from '../planning/plan.js';
import type { InputSchema } from '../../values/schema.js';
import { stepsDialect, type StepsOptions } from '../text-tools/dialects.js';
import { textTools } from '../text-tools/text-tools.js';

export interface PlannerOptions {
  /** Tool calling: as a JSON list in text, for any model (`steps`, the default), or `native`. */
  readonly calling?: 'steps' | 'native';
  /** Options of the dialect `steps`. */
  readonly dialect?: StepsOptions;
  /** Whether to analyse the task before the first turn, with one request. Default: true. */
  readonly analyse?: boolean;
  /** After which turns the model reflects, with one request each; `false` for never. Default: `always`. */
  readonly reflect?: ReflectWhen | false;
  /** Whether the model keeps a plan with tools of its own; doubles the iterations. Default: false. */
  readonly plan?: boolean;
  /** Whether a separate request always writes the final answer. Default: only if the model gave none. */
  readonly finalize?: boolean;
  /** Length of the history above which one request rewrites the question; `false` for never. Default: 3. */
  readonly rewriteAbove?: number | false;
  /** Long-term memory. By default the model ranks the results and sees the best 3. */
  readonly longTermMemory?: LongTermMemoryOptions;
  /** Prompts of the phases, in place of the built-in ones. */
  readonly prompts?: PlanningPrompts;
}

/**
 * An agent that plans: it analyses the task, calls up to five tools in parallel per step, reflects on their results,
 * and ends with `complete_task`, whose answer is the answer of the call; with `native` calling, that is a tool, reason
 * `toolFinal`. 6 iterations, then a closing request. A question late in a conversation is rewritten before anything is
 * retrieved for it. Your options take precedence.
 */
export const planner = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlannerOptions = {},
): AgentOptions<Output> => {
  checkOptions('planner()', settings, rules);
  const { calling = 'steps', dialect, finalize = false, prompts = {}, longTermMemory } = settings;
  const { analyse = true, plan = false, rewriteAbove = 3 } = settings;
  checkOptions("planner(), 'prompts'", prompts, promptRules);
  if (calling === 'native' && dialect !== undefined) {
    throw misuse("planner(): 'dialect' requires calling: 'steps'. Remove one of them.");
  }
  // In a dialect, completion is not a tool: its answer streams like any other.
  const base =
    calling === 'native'
      ? withOwnTools(options, [completeTask({ finalize })])
      : { ...options, model: textTools(options.model, stepsDialect(dialect)) };
  const withReflection = { ...base, use: [...(base.use ?? []), ...afterActing(settings)] };
  // The plan is updated before the model thinks about it: directly after the tools, and first in a turn.
  const withPlanTools = plan ? withPlan(withReflection, promptOf(prompts.plan)) : withReflection;
  // Updates of the plan need iterations, too.
  const limits = { maxIterations: plan ? 12 : 6, parallel: 5 };
  const planned = {
    ...withPlanTools,
    ...withDefaults({ limits }, withPlanTools),
    use: [
      ...(withPlanTools.use ?? []),
      ...(analyse ? [insertBefore(reasoning, analyseTask(promptOf(prompts.analyseTask)))] : []),
      ...(rewriteAbove === false
        ? []
        : [rewriteQuestion({ above: rewriteAbove, ...promptOf(prompts.rewriteQuestion) })]),
    ],
  };
  return longTermMemory === undefined
    ? planned
    : withLongTermMemory(planned, {
        rank: true,
        top: 3,
        ...defined(longTermMemory),
        memory: longTermMemory.memory,
      });
};

const afterActing = ({
  reflect: when = 'always',
  finalize = false,
  prompts = {},
}: PlannerOptions): readonly Layer[] => {
  const reflecting =
    when === false ? [] : [insertAfter(acting, reflect({ when, ...promptOf(prompts.reflect) }))];
  const writing = synthesize({
    when: finalize ? 'always' : 'complete',
    ...promptOf(prompts.synthesize),
  });
  return [...reflecting, insertAfter(acting, writing)];
};

const promptOf = <Prompt>(prompt: Prompt | undefined): { readonly prompt?: Prompt } =>
  prompt === undefined ? {} : { prompt };

const promptRules: Readonly<Record<keyof PlanningPrompts, Rule>> = {
  analyseTask: isPrompt,
  reflect: isPrompt,
  synthesize: isPrompt,
  rewriteQuestion: isPrompt,
  plan: isText,
};

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
