import { addTools, type AgentOptions, type InputSchema, type Layer, MillraceError } from 'millrace';
import { withLongTermMemory } from 'millrace/long-term-memory';
import { acting, insertAfter, insertBefore, reasoning } from 'millrace/phases';
import {
  analyseTask,
  completeTask,
  reflect,
  rewriteQuestion,
  synthesize,
  withPlan,
} from 'millrace/planning';
import { stepsDialect, textTools } from '@millrace/text-tools';
import {
  checkOptions,
  defined,
  isFlag,
  isObject,
  isText,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { withDefaults } from './presets.js';

export interface PlannerOptions {
  /** Tool calling: as a JSON list in text, for any model (`steps`, the default), or `native`. */
  readonly calling?: 'steps' | 'native' | undefined;
  /** Options of the dialect `steps`. */
  readonly dialect?: Parameters<typeof stepsDialect>[0] | undefined;
  /** Whether to analyse the task before the first turn, with one request. Default: true. */
  readonly analyse?: boolean | undefined;
  /** After which turns the model reflects, with one request each; `false` for never. Default: `always`. */
  readonly reflect?: ReflectOptions['when'] | false | undefined;
  /** Whether the model keeps a plan with tools of its own; doubles the iterations. Default: false. */
  readonly plan?: boolean | undefined;
  /** Whether a separate request always writes the final answer. Default: only if the model gave none. */
  readonly finalize?: boolean | undefined;
  /** Length of the history above which one request rewrites the question; `false` for never. Default: 3. */
  readonly rewriteAbove?: number | false | undefined;
  /** Long-term memory. By default the model ranks the results and sees the best 3. */
  readonly longTermMemory?: Parameters<typeof withLongTermMemory>[1] | undefined;
  /** Prompts of the phases, in place of the built-in ones. */
  readonly prompts?: PlannerPrompts | undefined;
}

type ReflectOptions = NonNullable<Parameters<typeof reflect>[0]>;
type Prompt = NonNullable<ReflectOptions['prompt']>;

interface PlannerPrompts {
  readonly analyseTask?: Prompt;
  readonly reflect?: Prompt;
  readonly synthesize?: Prompt;
  readonly rewriteQuestion?: Prompt;
  readonly plan?: string;
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
    throw new MillraceError(
      'config',
      "planner(): 'dialect' requires calling: 'steps'. Remove one of them.",
    );
  }
  // In a dialect, completion is not a tool: its answer streams like any other.
  const base =
    calling === 'native'
      ? { ...options, use: [...(options.use ?? []), addTools(completeTask({ finalize }))] }
      : { ...options, model: textTools(options.model, stepsDialect(dialect)) };
  const withReflection = { ...base, use: [...(base.use ?? []), ...afterActing(settings)] };
  // The plan is updated before the model thinks about it: directly after the tools, and first in a turn.
  const withPlanTools = plan ? withPlan(withReflection, promptOf(prompts.plan)) : withReflection;
  // Updates of the plan need iterations, too.
  const limits = { maxIterations: plan ? 12 : 6, parallel: 5 };
  const planned = {
    ...withDefaults(withPlanTools, { limits }),
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

const promptOf = <Given extends Prompt>(prompt: Given | undefined): { readonly prompt?: Given } =>
  prompt === undefined ? {} : { prompt };

const isPrompt: Rule = [
  (value) => typeof value === 'string' || typeof value === 'function',
  'a string, or a function that returns one',
];

const promptRules: Readonly<Record<keyof PlannerPrompts, Rule>> = {
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
  reflect: [
    (value) =>
      value === false ||
      value === 'always' ||
      value === 'onError' ||
      typeof value === 'function' ||
      wholeNumber(1)[0](value),
    "'always', 'onError', a whole number of at least 1, a function, or false",
  ],
  plan: isFlag,
  finalize: isFlag,
  rewriteAbove: [
    (value) => value === false || wholeNumber(0)[0](value),
    'a whole number of at least 0, or false',
  ],
  longTermMemory: isObject,
  prompts: isObject,
};
