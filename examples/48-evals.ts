// Evals: cases and scorers for an agent, with a judge and a trajectory, and a comparison of two versions.
import { createAgent, tool } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  baselineOf,
  calledTools,
  compareToBaseline,
  describeChanges,
  evalTable,
  evaluate,
  includesText,
  judge,
  type Scorers,
  summary,
} from '@millrace/evals';
import { lastValueFrom } from 'rxjs';

const findOrder = tool({ name: 'find_order', description: 'Finds it.', run: () => '80 EUR' });
const refund = tool({ name: 'refund', description: 'Pays money back.', run: () => 'Paid.' });
const cases = [
  { id: 'refund', input: 'I want my money back for A-17.', expected: '80 EUR' },
  { id: 'greeting', input: 'Hello!', expected: 'help' },
];
// Models that play scripts. Use openai('gpt-5-mini') or another one instead.
const version = (...script: readonly ScriptedAnswer[]) => {
  const agent = createAgent({ model: scriptedModel(...script), tools: [findOrder, refund] });
  const grades = ['good', 'partly'].map((grade) => [text(`{"reason":"…","grade":"${grade}"}`)]);
  const scorers: Scorers = {
    facts: includesText(),
    tools: calledTools(({ id }) => (id === 'refund' ? ['find_order', 'refund'] : [])),
    polite: judge(scriptedModel(...grades), { criteria: 'The answer is polite.' }),
  };
  return lastValueFrom(evaluate(agent, cases, scorers, { concurrency: 1 }).pipe(summary()));
};

const [paid, greeting] = [[text('You will get 80 EUR.')], [text('Hello! How can I help?')]];
const first = await version([toolCall('find_order')], [toolCall('refund')], paid, greeting);
console.log(evalTable(first, { time: false }));
const second = await version([toolCall('refund')], paid, greeting); // does not look up the order
console.log(describeChanges(compareToBaseline(second, baselineOf(first))).join('\n'));
