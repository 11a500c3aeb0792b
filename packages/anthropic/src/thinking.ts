import type { ThinkingConfigParam } from '@anthropic-ai/sdk/resources/messages';
import { isRecord } from '@millrace/core/adapter';
import { isThinking } from './assistant-blocks.js';
import type { Turn } from './turns.js';

/**
 * How a model thinks before it answers: not at all, as much as it sees fit, or with a budget of tokens (at least
 * 1,024, which come on top of those of the answer). Which of these a model takes, and what it does without, depends
 * on the model.
 */
export type Thinking = false | 'adaptive' | { readonly budgetTokens: number };

/** What the wire calls it; nothing, where the model's default is wanted. */
export const thinkingConfig = (thinking: Thinking | undefined): ThinkingConfigParam | undefined => {
  if (thinking === undefined) return undefined;
  if (thinking === false) return { type: 'disabled' };
  return thinking === 'adaptive'
    ? { type: 'adaptive' }
    : { type: 'enabled', budget_tokens: thinking.budgetTokens };
};

/** Models that think whatever they are told. https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5 */
const alwaysThinking = /opus-5[-.]5|fable-5[-.]1/u;

/** Tells whether a model thinks: because it is told to, or whatever it is told. It cannot then be made to use a tool. */
export const isThinkingEnabled = (model: string, config: unknown): boolean =>
  alwaysThinking.test(model) ||
  (isRecord(config) && (config['type'] === 'enabled' || config['type'] === 'adaptive'));

/**
 * Tells whether a conversation can be gone on with while a budget for thinking is given: an answer that is not
 * finished, because its tools have just run or it paused, must have begun with thinking of Anthropic's. It has not
 * after another vendor's model stood in.
 */
export const canContinueThinking = (turns: readonly Turn[]): boolean => {
  const last = turns.at(-1);
  const answer = turns.findLast(({ role }) => role === 'assistant');
  const isOpen = last === answer || last?.content[0]?.type === 'tool_result';
  const [first] = answer?.content ?? [];
  return !isOpen || first === undefined || isThinking(first);
};
