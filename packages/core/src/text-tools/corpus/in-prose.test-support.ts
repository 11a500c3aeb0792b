import { answer, search, use, uses, type Row } from './sample.test-support.js';

const json = '{"name": "search", "arguments": {"q": "cats"}}';
const asText = (name: string, text: string): Row => [name, text, answer(text)];

export const inProse: readonly Row[] = [
  asText('an example in a line', `To call it, use ${json} in your request.`),
  asText('an example at the end of a line', `To call it, use ${json}`),
  asText('an example in a fence', `So:\n\`\`\`json\n${json}\n\`\`\`\nThat would search. Shall I?`),
  asText('an example and more prose', `So:\n${json}\nThat would search. Shall I?`),
  asText('examples and more prose', `So:\n${json}\n${json}\nThat would search twice.`),
  asText('a name in prose', 'I think about [{"name": "search"}] a lot.'),
  asText('a name on a line', 'I think about\n{"name": "now"}'),
  asText('a list of examples', `I could:\n1. ${json}\n2. ${json}`),
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
  ['an invented observation behind prose', `Sure:\n${json}\nObservation: many\nSo many.`, search],
];
