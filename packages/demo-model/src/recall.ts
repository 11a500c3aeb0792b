import { outlineParts } from './outline-parts.js';
import type { PlanContext } from './plan-context.js';
import { planSteps } from './plan-steps.js';
import type { Turn } from './read-conversation.js';
import { valueOf } from './read-result.js';
import type { Toolbox } from './read-tools.js';
import type { MissingStep, Step } from './step.js';

/** Gathers what earlier turns leave for a follow-up: their tools, their last value, and what was asked for. */
export const recall = (turns: readonly Turn[], toolbox: Toolbox): PlanContext => {
  const last = turns.at(-1);
  const used = (last?.rounds.flat() ?? []).filter(({ isError }) => !isError).toReversed();
  const tools = used.flatMap(({ name }) => toolbox.tools.find((tool) => tool.name === name) ?? []);
  return {
    toolbox,
    answers: new Map(),
    earlierTools: [...new Set(tools)],
    earlierValue: used[0] === undefined ? undefined : valueOf(used[0].text),
    asked: askedIn(turns, toolbox),
  };
};

/** What the last turn asked the user for, found by planning the turns again, the oldest first. */
const askedIn = (turns: readonly Turn[], toolbox: Toolbox): MissingStep | undefined =>
  turns.reduce<MissingStep | undefined>((asked, { question }) => {
    const none = { answers: new Map(), earlierTools: [], earlierValue: undefined };
    const steps = planSteps(outlineParts(question, toolbox).parts, { toolbox, asked, ...none });
    return steps.find(isMissing);
  }, undefined);

const isMissing = (step: Step): step is MissingStep => step.status === 'missing';
