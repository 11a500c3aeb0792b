import { answer, refused, search, use, type Row } from './sample.test-support.js';

export const endings: readonly Row[] = [
  ['None for no arguments', 'Action: now\nAction Input: None', use('now')],
  ['words for no arguments', 'Action: now\nAction Input: (no input)', use('now')],
  ['N/A for no arguments', 'Action: now\nAction Input: N/A', use('now')],
  ['None where arguments are needed', 'Action: weather\nAction Input: None', refused],
  ['arguments in backticks', 'Action: search\nAction Input: `{"q": "cats"}`', search],
  ['no arguments in backticks', 'Action: now\nAction Input: `{}`', use('now')],
  ...['<|im_end|>', '</s>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>\n<|im_end|>\n'].flatMap(
    (token): readonly Row[] => [
      [`an answer and ${token.trim()}`, `Final Answer: 42${token}`, answer('42')],
      [`a name and ${token.trim()}`, `Action: now${token}`, use('now')],
      [`prose and ${token.trim()}`, `The sum is 4.\n${token}`, answer('The sum is 4.')],
    ],
  ),
  ['words that are struck out', 'Final Answer: <s>41</s>', answer('<s>41</s>')],
  [
    'a token within an answer',
    'Final Answer: Write <|im_end|> there.',
    answer('Write <|im_end|> there.'),
  ],
];
