import { type ContentBlock, isContentBlock, textBlock, textOf } from '../message.js';
import type { EndReason, Reply } from '../reply.js';
import { type ToolOutput, toolOutput } from '../tool-output.js';

/** What the model that has asked an agent is told of its reply: the answer, or in words why there is none. */
export const delegatedOutput = (name: string, reply: Reply): ToolOutput => {
  const { reason, iterations, toolUses, usage, output, sources } = reply;
  const told = tellings[reason];
  const details = {
    agent: reply.name ?? name,
    reason,
    iterations,
    toolUses,
    usage,
    ...(output === undefined ? {} : { output }),
    ...(sources === undefined ? {} : { sources }),
  };
  const content = told === undefined ? answerOf(reply) : noted(told(name), reply);
  return toolOutput({ content, details, isError: told !== undefined && !hasAnswer.has(reason) });
};

/** A value is told as what it is: the text around it is for people. */
const answerOf = ({ content, output }: Reply): readonly ContentBlock[] => {
  if (output !== undefined) return [textBlock(JSON.stringify(output))];
  const said = content.filter(isContentBlock);
  return said.length > 0 ? said : [textBlock('(It has said nothing.)')];
};

/** What has become of it, and what it has said. */
const noted = (what: string, reply: Reply): readonly ContentBlock[] => {
  if (reply.reason === 'suspended' || textOf(reply).trim() === '') return [textBlock(what)];
  return [textBlock(`${what} What it has said:\n`), ...answerOf(reply)];
};

/** They end with an answer, be it less than what was asked for. */
const hasAnswer: ReadonlySet<EndReason> = new Set(['truncated', 'maxIterations', 'budget']);

type Telling = (name: string) => string;

const tellings: Readonly<Partial<Record<EndReason, Telling>>> = {
  truncated: (name) => `The answer of the agent '${name}' is cut off: it was too long.`,
  maxIterations: (name) => `The agent '${name}' has used up all its steps.`,
  budget: (name) => `The agent '${name}' has used up its budget.`,
  interrupted: (name) => `The agent '${name}' was interrupted before it was done.`,
  stopped: (name) => `The agent '${name}' was stopped before it was done.`,
  refused: (name) => `The agent '${name}' would not answer.`,
  suspended: (name) =>
    `The agent '${name}' waits for a result that somebody has to bring, and nobody can bring it here. Go on without, or say what is missing.`,
};
