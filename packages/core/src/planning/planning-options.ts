import type { Model } from '../model.js';
import { isModel, type Rule, wholeNumber } from '../options.js';
import type { PlanningPrompt } from './planning-prompt.js';

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
