import { answer, search, thought, type Row } from './sample.test-support.js';

const musing = 'I have to think about this for quite a while, as it is not easy. '.repeat(6);

export const drafts: readonly Row[] = [
  [
    'a draft of an action before a lone tag',
    `${musing}\nAction: {"tool": "now", "inputs": {}}\n</think>\n\nAction: {"tool": "search", "inputs": {"q": "cats"}}`,
    search,
  ],
  [
    'a broken draft before a lone tag',
    `Hm.\nAction: call("x", 2)\n</think>\nFinal Answer: 42`,
    answer('42'),
  ],
  [
    'a draft of an answer before a lone tag',
    'Thought: a\nAction: {"tool": "now", "inputs": {}}\n</think>\nFinal Answer: 42',
    answer('42'),
  ],
  [
    'only a draft before a lone tag',
    'Action: {"tool": "now", "inputs": {}}\n</think>',
    thought(''),
  ],
  ['an end tag within a line', 'Write </think> to end it.', answer('Write </think> to end it.')],
  [
    'an end tag in backticks',
    'The tag is `</think>`\nand no other.',
    answer('The tag is `</think>`\nand no other.'),
  ],
  ['an end tag behind an answer', 'Final Answer: 42\n</think>', answer('42')],
];
