import { answer, type Row } from './sample.test-support.js';

export const answers: readonly Row[] = [
  ['an answer of a shorter name', 'Thought: known\nAnswer: 42', answer('42')],
  ['an answer of a longer name', 'Thought: known\n**AI Answer:** 42', answer('42')],
  ['an answer behind a dash', 'Thought: known\nFinal answer - 42', answer('42')],
  ['an answer of a shorter name without a thought', 'Answer: 42', answer('Answer: 42')],
];
