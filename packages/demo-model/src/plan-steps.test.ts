import { describe, expect, it } from '@jest/globals';
import { fourTools } from './declarations.test-data.js';
import { outlineParts } from './outline-parts.js';
import type { PlanContext } from './plan-context.js';
import { planSteps } from './plan-steps.js';
import { readTools } from './read-tools.js';
import { callKey } from './step.js';

const toolbox = readTools(fourTools);
const nothing: PlanContext = {
  toolbox,
  answers: new Map(),
  earlierTools: [],
  earlierValue: undefined,
  asked: undefined,
};

const statusesOf = (question: string, context: Partial<PlanContext> = {}): readonly string[] =>
  planSteps(outlineParts(question, toolbox).parts, { ...nothing, ...context }).map((step) =>
    step.status === 'call' ? `${step.status} ${step.tool.name}` : step.status,
  );

const answered = (expression: string, text: string, isError = false): PlanContext['answers'] => {
  const input = { expression };
  const observation = { name: 'calculator', input, text, isError };
  return new Map([[callKey('calculator', input), observation]]);
};

describe('planSteps', () => {
  it.each([
    ['2 + 2 and the time in Rome', ['call calculator', 'call clock']],
    ['time in Rome and Oslo', ['call clock', 'call clock']],
    ['what time is it?', ['missing']],
    ['6 * 7, then add 3', ['call calculator', 'waiting']],
    ['add 3', ['blocked']],
    ['take 10, double it', ['given', 'call calculator']],
    ['Read a.md and tell me its title', ['call read_file', 'waiting']],
    ['if it rains, how do streams end?', ['condition', 'unfit']],
    ['how do streams end?', ['call search_docs']],
    ['paint a stream', ['unfit']],
  ])('%s', (question, expected) => {
    expect(statusesOf(question)).toEqual(expected);
  });

  it('goes on when an earlier result is there, unless it is no value', () => {
    const question = '6 * 7, then add 3';
    const done = ['call calculator', 'call calculator'];
    expect(statusesOf(question, { answers: answered('6 * 7', '42') })).toEqual(done);
    const vain = ['call calculator', 'blocked'];
    expect(statusesOf(question, { answers: answered('6 * 7', 'a\nb') })).toEqual(vain);
    expect(statusesOf(question, { answers: answered('6 * 7', '42', true) })).toEqual(vain);
  });

  it('knows the turn before', () => {
    const clocks = toolbox.tools.filter(({ name }) => name === 'clock');
    expect(statusesOf('and in Paris?', { earlierTools: clocks })).toEqual(['call clock']);
    expect(statusesOf('times two', { earlierValue: '42' })).toEqual(['call calculator']);
  });
});
