import { answer, refused, search, use, uses, type Row } from './sample.test-support.js';

const json = '{"name": "search", "arguments": {"q": "cats"}}';
const asText = (name: string, text: string): Row => [name, text, answer(text)];
const asked = (name: string, text: string): Row => [name, text, refused];
const unknown = json.replace('search', 'fly');
const unfit = json.replace('"cats"', '5');

export const inProse: readonly Row[] = [
  asked('a call in a line', `Sure! I use ${json} for that.`),
  asked('a call at the end of a line', `Here is the tool call: ${json}`),
  asked('a labelled call behind prose', `Sure! Action: ${json}`),
  asked(
    'a call in a fence and prose',
    `So:\n\`\`\`json\n${json}\n\`\`\`\nThat would search. Shall I?`,
  ),
  asked(
    'a fenced action and prose',
    'So:\n```json\n{"action": "search", "action_input": {"q": "cats"}}\n```\nThis searches.',
  ),
  asked('a call and more prose', `So:\n${json}\nThat would search. Shall I?`),
  asked('calls and more prose', `So:\n${json}\n${json}\nThat would search twice.`),
  asked('a list of calls', `I could:\n1. ${json}\n2. ${json}`),
  asText('an example in backticks', `To call it, use \`${json}\` in your request.`),
  asText('an unknown tool in a line', `To call it, use ${unknown} in your request.`),
  asText('an unknown tool and more prose', `So:\n${unknown}\nThat would fly. Shall I?`),
  asText('a labelled unknown tool behind prose', `Sure! Action: ${unknown}`),
  asText('arguments that do not fit in a line', `To call it, use ${unfit} in your request.`),
  asText('arguments that do not fit and more prose', `So:\n${unfit}\nThat would not search.`),
  asText('a name in prose', 'I think about [{"name": "search"}] a lot.'),
  asText('a name on a line', 'I think about\n{"name": "now"}'),
  ['a call behind prose', `Sure, here is the call:\n${json}`, search],
  ['a call in a fence behind prose', `Sure:\n\`\`\`json\n${json}\n\`\`\`\n`, search],
  ['a bracket too many behind prose', `Sure:\n${json}}\n`, search],
  [
    'two calls behind prose',
    `Sure:\n${json}\n{"name": "now", "arguments": {}}`,
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  [
    'a nested call behind prose',
    'Sure:\n{"type": "function", "function": {"name": "now", "arguments": "{}"}}',
    use('now'),
  ],
  ['marks of an answer', '<__final_answer__>It is 4.</__final_answer__>', answer('It is 4.')],
  [
    'marks of an answer in prose',
    'I know it: <__final_answer__>It is\n4 < 5.</__final_answer__> Done.',
    answer('It is\n4 < 5.'),
  ],
  ['a mark that opens', 'I know.\n<__final_answer__>\nIt is 4.\n', answer('It is 4.')],
  [
    'marks behind a label',
    'Final Answer: <__final_answer__>It is 4.</__final_answer__>',
    answer('It is 4.'),
  ],
  [
    'a label in marks',
    '<__final_answer__>Final Answer: It is 4.</__final_answer__>',
    answer('It is 4.'),
  ],
  [
    'a label in marks on its own line',
    'Thought: so\n<__final_answer__>\n**Answer:** It is 4.\n</__final_answer__>',
    answer('It is 4.'),
  ],
  [
    'no label in marks',
    '<__final_answer__> Answers are hard.</__final_answer__>',
    answer('Answers are hard.'),
  ],
  ['a mark twice', '<__final_answer__>\n<__final_answer__>It is 4.', answer('It is 4.')],
  ['a mark that closes', 'It is 4.</__final_answer__>', answer('It is 4.')],
  ['an invented observation behind prose', `Sure:\n${json}\nObservation: many\nSo many.`, search],
];
