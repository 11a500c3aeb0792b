import { refused, search, use, type Row } from './sample.test-support.js';

const namedInputs: readonly Row[] = [
  'Input:',
  'Inputs:',
  'Arguments:',
  'Parameters:',
  'Tool Input:',
  'Action Inputs:',
  'Action Parameters:',
  'Action input -',
  '**Input:**',
  '',
].flatMap((label): readonly Row[] => [
  [
    `arguments behind "${label}"`,
    `Action: search\n${label} {"q": "cats"}`.replace('\n ', '\n'),
    search,
  ],
]);

export const behindNames: readonly Row[] = [
  ...namedInputs,
  ['arguments in a fence', 'Action: search\n```json\n{"q": "cats"}\n```', search],
  ['arguments behind a blank line', 'Action: search\n\n{"q": "cats"}', search],
  ['words behind the name', 'Action: search\nI look for cats.', refused],
  ['arguments as words', 'Action: weather\ncity: Rome', refused],
  ['arguments in a list', 'Action: weather\n["Rome"]', refused],
  ['words behind a blank line', 'Action: now\n\nI wait.', use('now')],
  ['a name in a fence', '```\nAction: now\n```', use('now')],
  ['a thought behind the name', 'Action: now\nThought: I wait.', use('now')],
];
