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
  /** Whether the model keeps a plan, in tools of its own, with twice as many rounds. Default: false. */
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
 * `complete_task`, whose answer is the answer of the call; with `native` calling, a tool of that name, reason `toolFinal`. 5 rounds and one more, then a closing request. A question that comes late in a conversation is
 * written anew before anything is looked for by it. What the options say goes before that.
 */
export const planner = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  settings: PlannerOptions = {},
): AgentOptions<Output> => {
  checkOptions('planner()', settings, rules);
  const { calling = 'steps', dialect, finalize = false, prompts = {}, longTermMemory } = settings;
  const { analyse = true, plan = false, rewriteAbove: above = 3 } = settings;
  checkOptions("planner(), 'prompts'", prompts, promptRules);
  if (calling === 'native' && dialect !== undefined) {
    throw misuse("planner(): a 'dialect' is for calling: 'steps'. Leave one of them out.");
  }
  // In a dialect the completion is no tool: its answer streams as any other.
  const calls =
    calling === 'native'
      ? withOwnTools(options, [completeTask({ finalize })])
      : { ...options, model: textTools(options.model, stepsDialect(dialect)) };
  const thinking = { ...calls, use: [...(calls.use ?? []), ...afterActing(settings)] };
  // The plan is brought up to date before it is thought about: right behind the tools, and first in a turn.
  const keeping = plan ? withPlan(thinking, promptOf(prompts.plan)) : thinking;
  // What is said of the plan takes turns, too.
  const limits = { maxIterations: plan ? 12 : 6, parallel: 5 };
  const planning = {
    ...keeping,
    ...withDefaults({ limits }, keeping),
    use: [
      ...(keeping.use ?? []),
      ...(analyse ? [insertBefore(reasoning, analyseTask(promptOf(prompts.analyseTask)))] : []),
      ...(above === false
        ? []
        : [rewriteQuestion({ above, ...promptOf(prompts.rewriteQuestion) })]),
    ],
  };
  return longTermMemory === undefined
    ? planning
    : withLongTermMemory(planning, {
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
