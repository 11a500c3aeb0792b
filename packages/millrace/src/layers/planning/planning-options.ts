import { misuse } from '../../values/errors.js';
import type { Message } from '../../values/message.js';
import type { Model, ToolDeclaration } from '../../models/model.js';
import { isModel, type Rule, wholeNumber } from '../../values/options.js';

/** Options of phases that ask the model outside of the loop. */
export interface PlanningOptions {
  /** Name of the phase in events, usage and warnings; unique within an agent. Default: that of the function. */
  readonly name?: string | undefined;
  /** Replaces the built-in prompt. */
  readonly prompt?: PlanningPrompt | undefined;
  /** The model to ask. Default: that of the call. */
  readonly model?: Model | undefined;
  /** Maximum tokens of the answer. Default: 1,000. */
  readonly maxTokens?: number | undefined;
}

export const isPrompt: Rule = [
  (value) => typeof value === 'string' || typeof value === 'function',
  'a string, or a function that returns one',
];

export const planningRules: Readonly<Record<keyof PlanningOptions, Rule>> = {
  name: [(value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value), 'a word'],
  prompt: isPrompt,
  model: isModel,
  maxTokens: wholeNumber(1),
};

export const titleOf = (title: string, name: string, own: string): string =>
  name === own ? title : `${title}: ${name}`;

export interface PlanningView {
  readonly tools: readonly ToolDeclaration[];
  readonly messages: readonly Message[];
  readonly iteration: number;
}

export type PlanningPrompt = string | ((view: PlanningView) => string);

export const resolvePrompt = (prompt: PlanningPrompt, view: PlanningView): string => {
  const text: unknown = typeof prompt === 'function' ? prompt(view) : prompt;
  if (typeof text === 'string') return text;
  throw misuse('A prompt must be a string, or a function that returns one.');
};

export const analyseTaskPrompt = ({ tools }: PlanningView): string =>
  `Before you start, analyse the task. In a few lines, state what is asked for, what is known already, what has to be found out and in which order, and how to recognize that the task is done. Do not solve the task yet, and do not use tools now.${toolsIn(tools)}`;

export const reflectPrompt =
  'Look at the latest tool results. In a few lines, state what they show, what failed and why, what is still missing, and what to do next. If nothing is missing, state that the task can be answered. Do not answer it now, and do not use tools now.';

export const synthesizePrompt =
  'Write the final answer to the task now, for the user who asked, based on everything that was found. Do not use tools. State what could not be found and what is uncertain.';

/** Appended to the prompt of a synthesis with citations. */
export const citationPrompt =
  'If a statement is based on a numbered passage, put its number after the statement, such as [1]. Do not cite other numbers.';

export const rewriteQuestionPrompt =
  "You are given a conversation and the user's next message. Rewrite that message so that it can be understood without the conversation: replace references with what they refer to, and add nothing else. Keep the language. If the message can be understood as it is, repeat it. Reply with the message only.";

export const planPrompt =
  'This is the current plan. Keep it up to date: call update_step when you start, finish or abandon a step, and revise_plan when the remaining steps should change.';

const toolsIn = (tools: readonly ToolDeclaration[]): string =>
  tools.length === 0
    ? ''
    : `\n\nThe tools that will be available:\n${tools.map(({ name, description }) => `- ${name}: ${firstLine(description)}`).join('\n')}`;

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';
