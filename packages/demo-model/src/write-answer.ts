import { askFor } from './ask-for.js';
import { describeResult, focusOnResult } from './describe-result.js';
import { decline } from './introduce.js';
import type { Observation } from './read-conversation.js';
import type { Toolbox } from './read-tools.js';
import { shorten } from './shorten.js';
import { type CallStep, outcomeOf, type Step } from './step.js';

/** What an answer is written from. */
export interface AnswerContext {
  readonly question: string;
  readonly steps: readonly Step[];
  readonly answers: ReadonlyMap<string, Observation>;
  /** Results that belong to no step. */
  readonly others: readonly Observation[];
  readonly toolbox: Toolbox;
  /** Whether tools could have been used. */
  readonly mayAct: boolean;
}

/** Writes an answer: a sentence or a passage for each part of the question, in the order they were asked. */
export const writeAnswer = (context: AnswerContext): string => {
  const { question, steps, others, toolbox } = context;
  const isHopeless = steps.every(({ status }) => ['unfit', 'condition', 'given'].includes(status));
  if (isHopeless && others.length === 0) return decline(shorten(question), toolbox);
  const parts = [
    ...steps.map((step, index) => describeStep(step, steps.slice(0, index), context)),
    ...others.map((observation) => describeOther(observation, context)),
  ];
  const isLong = parts.some((part) => part.includes('\n'));
  return [...new Set(parts)].filter((part) => part !== '').join(isLong ? '\n\n' : ' ');
};

const describeStep = (step: Step, before: readonly Step[], context: AnswerContext): string => {
  switch (step.status) {
    case 'call':
      return describeCall(step, context);
    case 'missing':
      return askFor(step);
    case 'aside':
      return describeAside(step.text, before, context.answers);
    case 'given':
      return '';
    case 'refused':
    case 'remark':
      return step.reason;
    case 'waiting':
      return `I did not get to “${shorten(step.text)}”.`;
    case 'blocked':
      return `I left out “${shorten(step.text)}”, which needs a result that is not there.`;
    case 'condition':
      return `I cannot take “${shorten(step.text)}” into account.`;
    case 'unfit':
      return `I have no tool for “${shorten(step.text)}”.`;
  }
};

/** What the last result says about a further part. */
const describeAside = (
  text: string,
  before: readonly Step[],
  answers: AnswerContext['answers'],
): string => {
  const step = before.findLast(({ status }) => status === 'call');
  const outcome = step?.status === 'call' ? outcomeOf(step, answers) : undefined;
  return outcome?.status === 'done'
    ? focusOnResult(text, outcome.observation)
    : `I have no tool for “${shorten(text)}”.`;
};

const describeCall = (step: CallStep, { answers, mayAct }: AnswerContext): string => {
  const outcome = outcomeOf(step, answers);
  if (outcome.status === 'open') {
    return mayAct
      ? `I did not get to “${shorten(step.text)}”.`
      : `Without tools I cannot answer “${shorten(step.text)}”.`;
  }
  return describeResult(step.tool, outcome.input, outcome.observation, step.text);
};

const describeOther = (observation: Observation, { toolbox, question }: AnswerContext): string => {
  const tool = toolbox.tools.find(({ name }) => name === observation.name);
  const subject = observation.isError || tool === undefined ? observation.name : question;
  return describeResult(tool, observation.input, observation, subject);
};
