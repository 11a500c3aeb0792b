import { answer, refused, type Row, search } from './sample.test-support.js';

const json = '{"name": "search", "arguments": {"q": "cats"}}';
const template = 'Use this:\n\n```\nAction: search\nAction Input: {"q": "x"}\n```\n';
const mentioned = `You write \`<tool_call>${json}</tool_call>\`, and it is sent.`;
const shown = `Write:\n\`\`\`xml\n<tool_call>${json}</tool_call>\n\`\`\`\nand wait.`;

/** What stands behind and around actions. */
export const asides: readonly Row[] = [
  ['arguments behind JSON', 'Action: {"tool": "search"}\nAction Input: {"q": "cats"}', search],
  [
    'arguments behind empty ones',
    'Action: {"tool": "search", "inputs": {}}\nInputs: {"q": "cats"}',
    search,
  ],
  ['arguments as JSON behind JSON', 'Action: {"tool": "search"}\n{"q": "cats"}', search],
  ['arguments behind brackets', 'Action: search()\nAction Input: {"q": "cats"}', search],
  ['arguments in a tag', '<tool_call>{"name": "search"}\n{"q": "cats"}</tool_call>', search],
  [
    'arguments twice',
    'Action: {"tool": "search", "inputs": {"q": "dogs"}}\nAction Input: {"q": "cats"}',
    refused,
  ],
  [
    'an answer behind no action',
    'Thought: I can answer.\nAction: None\nAction Input: None\n\nThe capital is Rome.',
    answer('The capital is Rome.'),
  ],
  [
    'an answer as the input of none',
    'Action: None\nAction Input: It is Rome.',
    answer('It is Rome.'),
  ],
  ['words for no action', 'Thought: a\nAction: None needed.\nFinal Answer: Rome', answer('Rome')],
  [
    'words for an action',
    'Action: Answer the question directly.\nFinal Answer: Rome',
    answer('Rome'),
  ],
  ['an answer twice', 'Final Answer: 4\n\nFinal Answer: 4', answer('4')],
  ['an answer and another', 'Final Answer: 4\n\nFinal Answer: 5', answer('4\n\nFinal Answer: 5')],
  ['a space before the colon', 'Action\u00a0: search\nAction Input\u202f: {"q": "cats"}', search],
  ['an action in backticks', mentioned, answer(mentioned)],
  ['an action in code', shown, answer(shown)],
  ['an action in a template', `${template}\nReplace the words.`, refused],
  ['an action in a fence behind prose', template, { uses: [['search', { q: 'x' }]] }],
];

/** An action in the form of the dialect, with prose around. */
export const remarks = (action: string): readonly Row[] => [
  ['an action and a remark', `I look.\n${action}\nI will wait for the result.`, refused],
  ['a fenced action and a remark', `I look.\n\`\`\`json\n${action}\n\`\`\`\n(Waiting)`, refused],
];
