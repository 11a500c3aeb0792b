import { misuse } from '../../values/errors.js';
import type { Message } from '../../values/message.js';
import type { Model, ToolDeclaration } from '../../models/model.js';
import { isModel, type Rule, wholeNumber } from '../../values/options.js';

/** How a phase asks the model beside the loop. */
export interface PlanningOptions {
  /** What events, usage and warnings call the phase. Two of one kind need a name each. Default: the function's own. */
  readonly name?: string;
  /** What it is told, instead of what it is told by default. */
  readonly prompt?: PlanningPrompt;
  /** Who is asked. Default: the model of the call. */
  readonly model?: Model;
  /** Tokens that it may say. Default: 1,000. */
  readonly maxTokens?: number;
}

export const isPrompt: Rule = [
  (value) => typeof value === 'string' || typeof value === 'function',
  'a text, or a function that writes one',
];

export const planningRules: Readonly<Record<keyof PlanningOptions, Rule>> = {
  name: [(value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value), 'a word'],
  prompt: isPrompt,
  model: isModel,
  maxTokens: wholeNumber(1),
};

/** Under which title a phase notes what it was told. */
export const titleOf = (title: string, name: string, own: string): string =>
  name === own ? title : `${title}: ${name}`;

/** What a prompt can be written from. */
export interface PlanningView {
  /** The tools that can be used just now. */
  readonly tools: readonly ToolDeclaration[];
  /** The conversation as far as it has come. */
  readonly messages: readonly Message[];
  /** Which turn has been taken last; 0 before the first. */
  readonly iteration: number;
}

/** What the model is told, or a function that writes it. */
export type PlanningPrompt = string | ((view: PlanningView) => string);

/** What is told otherwise of one of the prompts that phases have by default. */
export interface PlanningPrompts {
  readonly analyseTask?: PlanningPrompt;
  readonly reflect?: PlanningPrompt;
  readonly synthesize?: PlanningPrompt;
  readonly rewriteQuestion?: PlanningPrompt;
  /** Stands above the plan in each request. */
  readonly plan?: string;
}

export const writtenPrompt = (prompt: PlanningPrompt, view: PlanningView): string => {
  const written: unknown = typeof prompt === 'function' ? prompt(view) : prompt;
  if (typeof written === 'string') return written;
  throw misuse('A prompt must be a text, or a function that returns one.');
};

export const analyseTaskPrompt = ({ tools }: PlanningView): string =>
  `Before the work begins, look at the task. In a few lines, say what is asked for, what is known already and what has to be found out, in which order that is best done, and how one can tell that it is done. Do not solve the task yet, and use no tools now.${toolsIn(tools)}`;

export const reflectPrompt =
  'Look at what the tools have just given. In a few lines, say what it settles, what has failed and why, what is still missing, and what is best done next. Where nothing is missing, say that the task can be answered. Do not answer it now, and use no tools now.';

export const synthesizePrompt =
  'Write the final answer to the task now, for whoever has asked, from all that has been found. Use no tools. Say what could not be found, and what is not certain.';

/** Follows the prompt of a synthesis that is to cite. */
export const citationPrompt =
  'Where a statement rests on one of the numbered passages, put its number behind it, such as [1]. Cite no other numbers.';

export const rewriteQuestionPrompt =
  'You read a conversation, and then what its user says next. Write that anew, so that it can be understood without the conversation: put names in the place of words that refer to them, and add nothing that is not meant. Keep the language. Where it can be understood as it is, repeat it. Reply with it alone.';

export const planPrompt =
  'This is the plan, as it stands. Keep it true: say with update_step when you begin a step, are done with it or give it up, and with revise_plan when the steps to come should be others.';

const toolsIn = (tools: readonly ToolDeclaration[]): string =>
  tools.length === 0
    ? ''
    : `\n\nThe tools that there will be:\n${tools.map(({ name, description }) => `- ${name}: ${firstLine(description)}`).join('\n')}`;

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';
