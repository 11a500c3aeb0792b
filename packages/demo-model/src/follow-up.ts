import { shareOf } from './choose-tool.js';
import { type Filling, fillArguments, type Input } from './fill-arguments.js';
import type { PlanContext } from './plan-context.js';
import { asksForSpan, isClock } from './present-time.js';
import type { ToolReading } from './read-tools.js';
import { choiceSteps, type Step } from './step.js';
import { contentTokens } from './words.js';

/** Meaningful words that a follow-up has at most. */
const shortFollowUp = 8;

/** Reads `and in Paris?` as the tool of before with new arguments. */
export const followUp = (
  text: string,
  tools: readonly ToolReading[],
  { toolbox }: PlanContext,
): readonly Step[] | undefined => {
  const words = contentTokens(text);
  if (words.length === 0 || words.length > shortFollowUp) return undefined;
  for (const tool of tools) {
    if (isClock(tool) && asksForSpan(text)) continue;
    const filling = fillArguments(tool.slots, text, { ownStems: tool.ownStems });
    const isFilled = filling.missing.length === 0 && filling.spans.length > 0 && !filling.waits;
    if (isFilled && shareOf(tool, filling, words, toolbox) > 0.5)
      return choiceSteps(text, { tool, filling });
  }
  return undefined;
};

/** Reads a message as the answer to what the turn before had to ask for. */
export const answerToAsked = (
  text: string,
  { asked }: PlanContext,
): readonly Step[] | undefined => {
  const words = contentTokens(text);
  if (asked === undefined || words.length === 0 || words.length > shortFollowUp) return undefined;
  const slots = asked.tool.slots.filter(
    ({ name, required }) => required && !Object.hasOwn(asked.input, name),
  );
  const filling = fillArguments(slots, text, { ownStems: asked.tool.ownStems, wholeText: true });
  if (filling.missing.length === slots.length || filling.waits) return undefined;
  return choiceSteps(text, { tool: asked.tool, filling: withInput(filling, asked.input) });
};

const withInput = (filling: Filling, input: Input): Filling => ({
  ...filling,
  calls: filling.calls.map((readings) => readings.map((reading) => ({ ...input, ...reading }))),
});
