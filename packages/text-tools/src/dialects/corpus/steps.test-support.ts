import { answer, refused, rome, search, use, uses, type Row } from './sample.test-support.js';

const list = '[{"name": "search", "arguments": {"q": "cats"}}, {"name": "now", "arguments": {}}]';
const both = uses(['search', { q: 'cats' }], ['now', {}]);

export const steps: readonly Row[] = [
  ['plain', list, both],
  ['prose before', `I need both.\n${list}`, both],
  ['in a fence', `\`\`\`json\n${list}\n\`\`\``, both],
  ['in a fence behind prose', `I need both.\n\n\`\`\`json\n${list}\n\`\`\`\n`, both],
  ['one object', '{"name": "search", "arguments": {"q": "cats"}}', search],
  ['an unknown tool behind prose', 'So:\n[{"name": "fly", "arguments": {}}]', use('fly')],
  [
    'data behind prose',
    'The people:\n[{"name": "Ann", "age": 3}]',
    answer('The people:\n[{"name": "Ann", "age": 3}]'),
  ],
  ['the answer', '[{"name": "complete_task", "arguments": {"answer": "42"}}]', answer('42')],
  [
    'the answer behind prose',
    'Done.\n[{"name": "complete_task", "arguments": {"answer": "42"}}]',
    answer('42'),
  ],
  ['the answer as a text', '[{"name": "complete_task", "arguments": "42"}]', answer('42')],
  [
    'the answer with more',
    '[{"name": "complete_task", "arguments": {"sum": 4, "unit": "m"}}]',
    answer('{"sum":4,"unit":"m"}'),
  ],
  [
    'an answer that is cut',
    '[{"name": "complete_task", "arguments": {"answer": "It is fou',
    answer('It is fou'),
    'repair',
  ],
  ['an answer that is missing', '[{"name": "complete_task"}]', refused],
  [
    'an answer beside a tool',
    '[{"name": "now", "arguments": {}}, {"name": "complete_task", "arguments": {"answer": "noon"}}]',
    refused,
  ],
  ['a bracket missing', '[{"name": "search", "arguments": {"q": "cats"}}', search, 'repair'],
  ['brackets missing', '[{"name": "search", "arguments": {"q": "cats"', search, 'repair'],
  [
    'cut in the second',
    '[{"name": "now", "arguments": {}}, {"name": "search", "arguments": {"q": "ca',
    refused,
  ],
  ['cut behind the first', '[{"name": "now", "arguments": {}},', refused],
  ['a comma too many', '[{"name": "search", "arguments": {"q": "cats"}},]', search, 'repair'],
  ['single quotes', "[{'name': 'search', 'arguments': {'q': 'cats'}}]", search, 'repair'],
  [
    'one entry without a name',
    '[{"name": "now", "arguments": {}}, {"arguments": {"q": "cats"}}]',
    refused,
  ],
  ['an entry that is a text', '["now"]', answer('["now"]')],
  ['a text among the entries', '[{"name": "now", "arguments": {}}, "search"]', refused],
  [
    'several lists',
    '[{"name": "search", "arguments": {"q": "cats"}}]\n[{"name": "now", "arguments": {}}]',
    both,
  ],
  [
    'objects one below the other',
    '{"name": "search", "arguments": {"q": "cats"}}\n{"name": "now", "arguments": {}}',
    both,
  ],
  ['an invented observation', `${list}\nObservation: noon`, both],
  ['[TOOL_CALLS] with a list', `[TOOL_CALLS]${list}`, both],
  ['[TOOL_CALLS] with a name', '[TOOL_CALLS]search{"q": "cats"}', search],
  ['[TOOL_CALLS] with [ARGS]', '[TOOL_CALLS]search[ARGS]{"q": "cats"}', search],
  ['[TOOL_CALLS] with an id', '[TOOL_CALLS]search[CALL_ID]a1b2[ARGS]{"q": "cats"}', search],
  ['[TOOL_CALLS] twice', '[TOOL_CALLS]search[ARGS]{"q": "cats"}[TOOL_CALLS]now[ARGS]{}', both],
  ['[ARGS] alone', 'search[ARGS]{"q": "cats"}', search],
  [
    'tags one below the other',
    '<tool_call>\n{"name": "search", "arguments": {"q": "cats"}}\n</tool_call>\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    both,
  ],
  ['a tag without its end', '<tool_call>{"name": "search", "arguments": {"q": "cats"}}', search],
  [
    'a tag with broken JSON',
    '<tool_call>{"name": "search", "arguments": {"q": "ca</tool_call>',
    refused,
  ],
  [
    'a tag in the middle of a line',
    'I look: <tool_call>{"name": "search", "arguments": {"q": "cats"}}</tool_call>',
    search,
  ],
  ['a tag that is only mentioned', 'Use the <tool_call> tag.', answer('Use the <tool_call> tag.')],
  ['a function tag', '<function=search>{"q": "cats"}</function>', search],
  [
    'a function with parameters',
    '<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>',
    rome,
  ],
  [
    'a function with parameters in a tag',
    '<tool_call>\n<function=weather>\n<parameter=city>Rome</parameter><parameter=days>2</parameter>\n</function>\n</tool_call>',
    rome,
  ],
  [
    'a number for a text',
    '<function=search><parameter=q>42</parameter></function>',
    use('search', { q: '42' }),
  ],
  [
    'a word for a number',
    '<function=weather><parameter=city>Rome</parameter><parameter=days>two</parameter></function>',
    refused,
  ],
  ['a parameter that is cut', '<function=search><parameter=q>ca', refused],
  [
    'a parameter with code',
    '<function=run><parameter=code>if (a < b) { print("x") }</parameter></function>',
    use('run', { code: 'if (a < b) { print("x") }' }),
  ],
  [
    'a parameter twice',
    '<function=search><parameter=q>a</parameter><parameter=q>b</parameter></function>',
    refused,
  ],
  ['a Python tag', '<|python_tag|>{"name": "search", "parameters": {"q": "cats"}}', search],
  ['a Python tag with a call', '<|python_tag|>search.call(q="cats")', refused],
  ['plain prose', 'The sum is 4.', answer('The sum is 4.')],
];
