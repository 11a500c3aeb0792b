import type { Hooks } from '../seams/hooks.js';
import { type Layer, type LayerContext, trusted } from '../seams/layer.js';
import { unpaired } from '../run.js';
import { cell } from '../step.js';
import { MillraceError } from '../values/errors.js';
import {
  type Message,
  textBlock,
  type ToolMessage,
  type ToolResultBlock,
  toolCallsOf,
} from '../values/message.js';

const strictness = cell('call', () => ({ isStrict: false }));

/** Errors with `memory` if a tool call of the history has no result, instead of repairing it with a `warning`. */
export const strictHistory = (): Layer =>
  trusted({
    name: 'strictHistory',
    priority: 59,
    call: (context) => (next) => (call) => {
      context.local(strictness).isStrict = true;
      return next(call);
    },
  });

/** A history in which each tool call has its result, with a `warning` if some had none; an error if it is strict. */
export const repaired = (
  history: readonly Message[],
  { report }: Pick<Hooks, 'report'>,
  { local }: Pick<LayerContext, 'local'>,
): readonly Message[] => {
  const fault = unpaired(history);
  if (fault === undefined) return history;
  if (local(strictness).isStrict) {
    throw new MillraceError(
      'memory',
      `The history contains ${fault}. Without strictHistory(), Millrace repairs it.`,
    );
  }
  const message = `The history contains ${fault}. Tool calls without a result got an error result.`;
  report(0, { type: 'warning', message });
  return paired(history);
};

/** Pairs each tool call with exactly one result: adds error results, and drops results without a tool call. */
export const paired = (messages: readonly Message[]): readonly Message[] =>
  messages.flatMap((message, index): readonly Message[] => {
    if (message.role === 'tool') return [];
    const uses = message.role === 'assistant' ? toolCallsOf(message) : [];
    if (uses.length === 0) return [message];
    const after = messages.slice(index + 1);
    const end = after.findIndex(({ role }) => role !== 'tool');
    const answers = after
      .slice(0, end === -1 ? undefined : end)
      .filter((answer): answer is ToolMessage => answer.role === 'tool');
    const results = answers.flatMap(({ content }) => content);
    const content = uses.map(
      ({ id }) => results.find((it) => it.toolCallId === id) ?? noResult(id),
    );
    return [message, { id: answers[0]?.id ?? `${message.id}/results`, role: 'tool', content }];
  });

const noResult = (toolCallId: string): ToolResultBlock => ({
  type: 'tool_result',
  toolCallId,
  content: [textBlock('No result: the call ended first. The tool may have run.')],
  isError: true,
});
