import { chooseTool, type Choice } from './choose-tool.js';
import { fillArguments } from './fill-arguments.js';
import { answerToAsked, followUp } from './follow-up.js';
import { objectionTo, remarkOn } from './objection.js';
import type { Part } from './outline-parts.js';
import type { PlanContext } from './plan-context.js';
import { type Reference, referenceFor, refersBack } from './reference.js';
import { seeksInformation } from './seek-information.js';
import { type CallStep, choiceSteps, type Step } from './step.js';
import { withoutPoliteness } from './without-politeness.js';

/** Plans the parts of a question in order, as far as the results that are there allow. */
export const planSteps = (parts: readonly Part[], context: PlanContext): readonly Step[] =>
  parts.reduce<readonly Step[]>(
    (steps, part) => [
      ...steps,
      ...stepsOf(part, { ...context, before: steps, count: parts.length }),
    ],
    [],
  );

interface PartContext extends PlanContext {
  /** The steps of the parts before. */
  readonly before: readonly Step[];
  /** How many parts the question has. */
  readonly count: number;
}

const stepsOf = (part: Part, context: PartContext): readonly Step[] => {
  const { text, condition, choice } = part;
  const before = context.before.at(-1);
  const given = before?.status === 'condition' ? before.text : '';
  const objection = condition ? undefined : objectionTo({ text, given, choice }, context.toolbox);
  if (objection !== undefined) return [{ status: 'refused', text, reason: objection }];
  if (condition) return [{ status: 'condition', text }];
  const value = context.before.length === 0 ? givenValue(text) : undefined;
  if (value !== undefined) return [{ status: 'given', text, value }];
  const reference = referenceFor(context.before, context);
  const waiting = waitFor(part, reference, context);
  if (waiting !== undefined) return [{ status: waiting, text }];
  const settled = settle(part, reference, context) ?? choice;
  return settled === undefined || settled.filling.waits
    ? stepsWithoutChoice(text, context)
    : withRemark(choiceSteps(text, settled), text, settled);
};

const withRemark = (steps: readonly Step[], text: string, choice: Choice): readonly Step[] => {
  const reason = remarkOn(text, choice);
  return reason === undefined ? steps : [...steps, { status: 'remark', text, reason }];
};

/** `start with 100`, `take 10` */
const givenValue = (text: string): string | undefined =>
  opening.exec(withoutPoliteness(text))?.groups?.['value']?.replaceAll(',', '');

const opening =
  /^(?:take|start (?:with|from|at)|begin with|consider) (?<value>-?\d[\d,]*(?:\.\d+)?)$/iu;

/** Whether a part has to wait for an earlier result, or waits in vain. */
const waitFor = (
  { text, choice }: Part,
  { status }: Reference,
  { before }: PartContext,
): 'waiting' | 'blocked' | undefined => {
  const waits = choice?.filling.waits === true;
  const mayRefer = choice === undefined && refersBack(text) && !isAfterSearch(before);
  if ((waits || mayRefer) && status === 'open') return 'waiting';
  const isInVain = status === 'failed' || (status === 'none' && !question.test(text));
  return waits && isInVain ? 'blocked' : undefined;
};

const question = /^\W*(?:how|why|what|which|who|when|where|is|are|does|do|can)\b/iu;

/** Chooses again for a part that refers to an earlier result, now that it is there. */
const settle = (
  { text, choice }: Part,
  reference: Reference,
  { toolbox, before }: PartContext,
): Choice | undefined => {
  const waits = choice?.filling.waits === true;
  const mayRefer = choice === undefined && refersBack(text) && !isAfterSearch(before);
  return reference.status === 'known' && (waits || mayRefer)
    ? chooseTool(text, toolbox, { reference: reference.value })
    : undefined;
};

/** What to do with a part that asks for no tool by itself. */
const stepsWithoutChoice = (text: string, context: PartContext): readonly Step[] => {
  const { before, count, earlierTools } = context;
  const last = lastCall(before);
  const inherited = last === undefined ? earlierTools : [last.tool];
  const answered = count === 1 ? answerToAsked(text, context) : undefined;
  const follow = answered ?? followUp(text, inherited, context);
  if (follow !== undefined) return follow;
  if (last !== undefined && !isAfterSearch(before) && isAside(text)) {
    return [{ status: 'aside', text }];
  }
  return search(text, context) ?? [{ status: 'unfit', text }];
};

/**
 * A question that no other tool fits goes to the tool that finds passages; the answer says how well they fit. One
 * that hangs on a condition does not: no passage could know it.
 */
const search = (text: string, { before, toolbox }: PartContext): readonly Step[] | undefined => {
  const tool = toolbox.tools.find(({ isRetrieval }) => isRetrieval);
  const isConditional = before.some(({ status }) => status === 'condition');
  if (tool === undefined || isConditional || !seeksInformation(text)) return undefined;
  const goesOn = isAfterSearch(before) && refersBack(text);
  const subject = goesOn ? `${lastCall(before)?.text ?? ''} ${text}` : text;
  const filling = fillArguments(tool.slots, subject, { ownStems: tool.ownStems });
  const isFilled = filling.missing.length === 0 && !filling.waits;
  return isFilled ? choiceSteps(text, { tool, filling }) : undefined;
};

const lastCall = (steps: readonly Step[]): CallStep | undefined =>
  steps.findLast((step) => step.status === 'call');

const isAfterSearch = (steps: readonly Step[]): boolean =>
  lastCall(steps)?.tool.isRetrieval === true;

/** `its version`, `tell me the target` */
const isAside = (text: string): boolean =>
  refersBack(text) || /^(?:tell|give|show|find|list)\b.*\bthe\b/iu.test(text);
