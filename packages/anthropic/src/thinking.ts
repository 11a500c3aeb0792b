import type { ThinkingConfigParam } from '@anthropic-ai/sdk/resources/messages';
import { isRecord } from 'millrace/values';
import { isThinking } from './assistant-blocks.js';
import type { Turn } from './turns.js';

/**
 * How a model thinks before it answers: not at all, as much as it sees fit, or with a budget of at least 1,024 tokens,
 * which are added to those of the answer. Supported values and the default depend on the model.
 */
export type Thinking = false | 'adaptive' | { readonly budgetTokens: number };

/** Maps the option to the field of a request; `undefined` selects the model's default. */
export const thinkingConfig = (thinking: Thinking | undefined): ThinkingConfigParam | undefined => {
  if (thinking === undefined) return undefined;
  if (thinking === false) return { type: 'disabled' };
  return thinking === 'adaptive'
    ? { type: 'adaptive' }
    : { type: 'enabled', budget_tokens: thinking.budgetTokens };
};

/**
 * Models that always think, even if thinking is disabled.
 * https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5
 */
const alwaysThinking = /opus-5[-.]5|fable-5[-.]1/u;

/** Whether a model thinks, because of the request or always. If so, it cannot be forced to call a tool. */
export const isThinkingEnabled = (model: string, config: unknown): boolean =>
  alwaysThinking.test(model) ||
  (isRecord(config) && (config['type'] === 'enabled' || config['type'] === 'adaptive'));

/**
 * Whether the API accepts a thinking budget for a conversation: an unfinished answer, which paused or called tools,
 * must have started with thinking of Anthropic. An answer of a fallback to another vendor has not.
 */
export const canContinueThinking = (turns: readonly Turn[]): boolean => {
  const last = turns.at(-1);
  const answer = turns.findLast(({ role }) => role === 'assistant');
  const isOpen = last === answer || last?.content[0]?.type === 'tool_result';
  const [first] = answer?.content ?? [];
  return !isOpen || first === undefined || isThinking(first);
};
