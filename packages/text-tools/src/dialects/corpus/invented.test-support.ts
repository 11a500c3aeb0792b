import { answer, refused, rome, type Row } from './sample.test-support.js';

export const invented: readonly Row[] = [
  [
    'an invented observation behind labels',
    'Thought: cold?\nAction: weather\nAction Input: {"city": "Rome", "days": 2}\nObservation: -40\nFinal Answer: -40',
    rome,
  ],
  [
    'numbered labels',
    'Thought 1: cold?\nAction 1: weather\nAction Input 1: {"city": "Rome", "days": 2}\nObservation 1: -40\nThought 2: cold.\nFinal Answer: -40',
    rome,
  ],
  [
    'bold numbered labels',
    '**Thought 1:** cold?\n**Action 1**: weather\n**Action Input 1:** {"city": "Rome", "days": 2}',
    rome,
  ],
  [
    'a bare name in an answer',
    'Final Answer: To file:\n\nAction: weather\n\nIs what you need.',
    answer('To file:\n\nAction: weather\n\nIs what you need.'),
  ],
  [
    'a bare name at the end of an answer',
    'Final Answer: To file:\nAction: now',
    answer('To file:\nAction: now'),
  ],
  [
    'headings in prose',
    'The best:\n\nAction: call your bank today.\n\nObservation: banks close at 5.\n\nRegards',
    refused,
  ],
];
