import type { ModelRequest, ToolDeclaration } from '@millrace/core';
import { explainAnswer, explainCalls } from './explain.js';
import { forceCall, insists } from './force-call.js';
import { introduce } from './introduce.js';
import { mostParts, outlineParts } from './outline-parts.js';
import { planSteps } from './plan-steps.js';
import { type Conversation, type Observation, readConversation } from './read-conversation.js';
import { readTools, type Toolbox } from './read-tools.js';
import { recall } from './recall.js';
import { type Answers, type Call, replay, wanted } from './replay.js';
import { asksForHelp, isSmallTalk, smallReply } from './small-talk.js';
import { outcomeOf, type Step } from './step.js';
import { writeAnswer } from './write-answer.js';

/** What the model does about a request: it uses tools, or it answers. */
export type Response = { readonly thinking: string } & (
  | { readonly type: 'act'; readonly calls: readonly Call[] }
  | { readonly type: 'answer'; readonly text: string }
);

/** Decides what to do about a request. A pure function: the same request always gets the same response. */
export const respond = (request: ModelRequest): Response => {
  const conversation = readConversation(request);
  const { question, rounds, earlier, mayAct } = conversation;
  const isForced = mayAct && insists(request.toolChoice) && rounds.length === 0;
  const toolbox = toolboxOf(request, conversation);
  const talk = isForced ? undefined : talkAbout(conversation, toolbox);
  if (talk !== undefined) return { type: 'answer', thinking: 'Nothing to look up. ', text: talk };

  const { parts, isCut } = outlineParts(question, toolbox);
  const context = recall(earlier, toolbox);
  const answers = replay(parts, conversation, context);
  const steps = planSteps(parts, { ...context, answers });
  const planned = callsNow(steps, answers, conversation);
  const forced = isForced && planned.length === 0 ? forceCall(question, toolbox) : undefined;
  const calls = forced === undefined ? planned : [forced];
  if (calls.length > 0) return { type: 'act', thinking: explainCalls(steps, calls), calls };

  const others = withoutStep(rounds.flat(), steps, answers);
  const answer = writeAnswer({ question, steps, answers, others, toolbox, mayAct });
  const rest = isCut ? `\n\nI took the first ${mostParts} parts of the question.` : '';
  return { type: 'answer', thinking: explainAnswer(steps), text: `${answer}${rest}` };
};

/** The tools of the request, or the one it insists on; where it has none, what results show of those that were used. */
const toolboxOf = (
  { toolChoice }: ModelRequest,
  { declarations, rounds }: Conversation,
): Toolbox => {
  if (declarations.length === 0) return readTools(rounds.flat().map(declarationOf));
  const name = typeof toolChoice === 'object' ? toolChoice.name : undefined;
  return readTools(declarations.filter((it) => name === undefined || it.name === name));
};

const declarationOf = ({ name, input }: Observation): ToolDeclaration => ({
  name,
  description: '',
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(Object.keys(input).map((key) => [key, {}])),
    required: Object.keys(input),
  },
});

/** What is said to a greeting, a thank-you, or a question about the model itself. */
const talkAbout = ({ question, rounds }: Conversation, toolbox: Toolbox): string | undefined => {
  if (rounds.length > 0) return undefined;
  if (question === '' || asksForHelp(question)) return introduce(toolbox);
  return isSmallTalk(question)
    ? (smallReply(question) ?? introduce(toolbox, 'Hello. '))
    : undefined;
};

/** The calls to make now: none that this turn has made before, and no more rounds than its parts can need. */
const callsNow = (
  steps: readonly Step[],
  answers: Answers,
  { rounds, mayAct }: Conversation,
): readonly Call[] =>
  mayAct && rounds.length <= steps.length * 2 + 1 ? wanted(steps, answers) : [];

/** The results that no step has asked for. */
const withoutStep = (
  observations: readonly Observation[],
  steps: readonly Step[],
  answers: Answers,
): readonly Observation[] => {
  const used = new Set(
    steps
      .flatMap((step) => {
        if (step.status !== 'call') return [];
        return step.readings.flatMap((input) => outcomeOf({ ...step, readings: [input] }, answers));
      })
      .map((outcome) => (outcome.status === 'open' ? undefined : outcome.observation)),
  );
  return observations.filter((it) => !used.has(it));
};
