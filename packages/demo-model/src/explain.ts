import type { Call } from './replay.js';
import { shorten } from './shorten.js';
import type { Step } from './step.js';

/** Says in a sentence which tools are used for which part of a question. */
export const explainCalls = (steps: readonly Step[], calls: readonly Call[]): string => {
  const goals = new Map(
    steps
      .filter(({ status }) => status !== 'remark')
      .map((step) => [shorten(step.text), goalOf(step)]),
  );
  const parts = [...goals].map(([text, goal]) => `“${text}” → ${goal}`).join('; ');
  const uses = calls.map(({ name, input }) => `${name}(${argumentsIn(input)})`).join(', ');
  return `${counted(goals.size, 'part')}: ${parts}. Using ${uses}. `;
};

/** Says in a sentence what an answer is written from. */
export const explainAnswer = (steps: readonly Step[]): string => {
  const calls = steps.filter(({ status }) => status === 'call').length;
  return calls === 0 ? 'No tool to use. ' : `${counted(calls, 'result')}: writing the answer. `;
};

const goalOf = (step: Step): string => (step.status === 'call' ? step.tool.name : step.status);

const argumentsIn = (input: Call['input']): string =>
  Object.values(input)
    .map((value) => JSON.stringify(value))
    .map((it) => (it.length > longest ? `${it.slice(0, longest)}…` : it))
    .join(', ');

const longest = 80;

const counted = (count: number, what: string): string =>
  count === 1 ? `One ${what}` : `${count} ${what}s`;
