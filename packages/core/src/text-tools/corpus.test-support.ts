import type { ToolDeclaration } from '../model.js';

/** The dialects that the corpus is written in. */
export type DialectName = 'action' | 'flat' | 'steps' | 'lines';

type Use = readonly [name: string, input: Readonly<Record<string, unknown>>];

/** What a reply must come to. */
export type Expected =
  | { readonly uses: readonly Use[]; readonly text?: string }
  | { readonly answer: string }
  | { readonly refused: true }
  | { readonly thought: string };

/** A reply that is broken or odd, and how it must be read. */
export interface Sample {
  readonly dialect: DialectName;
  readonly name: string;
  readonly text: string;
  readonly expected: Expected;
  readonly by: 'local' | 'repair' | 'refused';
}

/** The tools that the samples ask for. */
export const corpusTools: readonly ToolDeclaration[] = [
  {
    name: 'search',
    description: 'Searches.',
    inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  },
  {
    name: 'weather',
    description: 'Tells the weather.',
    inputSchema: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer' },
        units: { type: 'object' },
      },
      required: ['city'],
    },
  },
  {
    name: 'run',
    description: 'Runs code.',
    inputSchema: {
      type: 'object',
      properties: { code: { type: 'string' }, dry: { type: 'boolean' } },
      required: ['code'],
    },
  },
  { name: 'now', description: 'Tells the time.', inputSchema: { type: 'object', properties: {} } },
];

type Row = readonly [name: string, text: string, expected: Expected, by?: 'local' | 'repair'];

const use = (name: string, input: Readonly<Record<string, unknown>> = {}): Expected => ({
  uses: [[name, input]],
});
const uses = (...all: readonly Use[]): Expected => ({ uses: all });
const answer = (text: string): Expected => ({ answer: text });
const refused: Expected = { refused: true };
const thought = (text: string): Expected => ({ thought: text });
const search: Expected = use('search', { q: 'cats' });
const rome: Expected = use('weather', { city: 'Rome', days: 2 });

/** A key of the prototype as ordinary data. */
const hostile: Readonly<Record<string, unknown>> = Object.fromEntries<unknown>([
  ['__proto__', { polluted: true }],
  ['q', 'cats'],
]);

const action: readonly Row[] = [
  ['plain', 'Thought: look\nAction: {"tool": "search", "inputs": {"q": "cats"}}', search],
  ['without a thought', 'Action: {"tool": "search", "inputs": {"q": "cats"}}', search],
  ['on the next line', 'Action:\n{"tool": "search", "inputs": {"q": "cats"}}', search],
  ['in a fence', 'Action:\n```json\n{"tool": "search", "inputs": {"q": "cats"}}\n```', search],
  ['in a bare fence', 'Action:\n```\n{"tool": "search", "inputs": {"q": "cats"}}\n```\n', search],
  [
    'in a fence on its line',
    'Action: ```json {"tool": "search", "inputs": {"q": "cats"}} ```',
    search,
  ],
  [
    'the whole reply in a fence',
    '```\nThought: look\nAction: {"tool": "search", "inputs": {"q": "cats"}}\n```',
    search,
  ],
  [
    'in a fence within a fence',
    'Action:\n```\n```json\n{"tool": "search", "inputs": {"q": "cats"}}\n```\n```',
    search,
  ],
  [
    'bold labels',
    '**Thought:** look\n**Action:** {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'bold words',
    '**Thought**: look\n**Action**: {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'headings',
    '### Thought:\nlook\n### Action:\n{"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  ['small letters', 'thought: look\naction: {"tool": "search", "inputs": {"q": "cats"}}', search],
  ['space before the colon', 'ACTION : {"tool": "search", "inputs": {"q": "cats"}}', search],
  [
    'a wide colon',
    'Thought：看\nAction：{"tool": "search", "inputs": {"q": "猫🐈"}}',
    use('search', { q: '猫🐈' }),
  ],
  ['CRLF', 'Thought: look\r\nAction: {"tool": "search",\r\n "inputs": {"q": "cats"}}\r\n', search],
  ['a mark of byte order', '\uFEFFAction: {"tool": "search", "inputs": {"q": "cats"}}', search],
  [
    'prose before',
    'I will look it up.\n\nAction: {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'prose behind',
    'Action: {"tool": "search", "inputs": {"q": "cats"}}\nI am waiting for the result.',
    search,
  ],
  ['without its label', 'Thought: look\n{"tool": "search", "inputs": {"q": "cats"}}', search],
  ['an unknown tool without its label', '{"tool": "fly", "inputs": {}}', use('fly')],
  [
    'an unknown tool',
    'Action: {"tool": "fly", "inputs": {"to": "Rome"}}',
    use('fly', { to: 'Rome' }),
  ],
  [
    'in prose',
    'Let me call {"tool": "search", "inputs": {"q": "cats"}} now',
    answer('Let me call {"tool": "search", "inputs": {"q": "cats"}} now'),
  ],
  [
    'an unknown tool in prose',
    'A config is {"tool": "hammer", "inputs": {}} for example.',
    answer('A config is {"tool": "hammer", "inputs": {}} for example.'),
  ],
  ['a comma too many', 'Action: {"tool": "search", "inputs": {"q": "cats",},}', search, 'repair'],
  ['single quotes', "Action: {'tool': 'search', 'inputs': {'q': 'cats'}}", search, 'repair'],
  ['no quotes around keys', 'Action: {tool: "search", inputs: {q: "cats"}}', search, 'repair'],
  [
    'a comment',
    'Action: {"tool": "search", /* why */ "inputs": {"q": "cats"} // q\n}',
    search,
    'repair',
  ],
  [
    'Python literals',
    'Action: {"tool": "run", "inputs": {"code": "x", "dry": True}}',
    use('run', { code: 'x', dry: true }),
    'repair',
  ],
  [
    'Python None for the thought',
    "Action: {'tool': 'search', 'inputs': {'q': 'cats'}, 'thought': None}",
    search,
    'repair',
  ],
  ['smart quotes', 'Action: {“tool”: “search”, “inputs”: {“q”: “cats”}}', search, 'repair'],
  [
    'a line break in a text',
    'Action: {"tool": "run", "inputs": {"code": "a\nb"}}',
    use('run', { code: 'a\nb' }),
    'repair',
  ],
  [
    'quotes in a text',
    'Action: {"tool": "search", "inputs": {"q": "say "hi" now"}}',
    use('search', { q: 'say "hi" now' }),
    'repair',
  ],
  ['a bracket missing', 'Action: {"tool": "search", "inputs": {"q": "cats"}', search, 'repair'],
  [
    'brackets missing before an observation',
    'Action: {"tool": "search", "inputs": {"q": "cats"\nObservation: many',
    search,
    'repair',
  ],
  ['a bracket too many', 'Action: {"tool": "search", "inputs": {"q": "cats"}}}', search],
  ['cut within a text', 'Action: {"tool": "search", "inputs": {"q": "ca', refused],
  [
    'cut within a number',
    'Action: {"tool": "weather", "inputs": {"city": "Rome", "days": 2',
    refused,
  ],
  ['cut within a word', 'Action: {"tool": "run", "inputs": {"code": "x", "dry": fal', refused],
  ['cut behind a key', 'Action: {"tool": "search", "inputs": {"q":', refused],
  ['cut within a key', 'Action: {"tool": "search", "inp', refused],
  ['cut behind a comma', 'Action: {"tool": "search", "inputs": {"q": "cats"},', refused],
  ['cut before its arguments', 'Action: {"tool": "search"', refused],
  ['cut at once', 'Action: {', refused],
  ['a path with backslashes', 'Action: {"tool": "search", "inputs": {"q": "C:\\Users"}}', refused],
  ['a pattern with backslashes', 'Action: {"tool": "search", "inputs": {"q": "\\d+"}}', refused],
  [
    'HTML entities',
    'Action: {&quot;tool&quot;: &quot;search&quot;, &quot;inputs&quot;: {}}',
    refused,
  ],
  [
    'the same key with another value',
    'Action: {"tool": "search", "inputs": {"q": "cats", "q": "dogs"}}',
    refused,
  ],
  [
    'the same key with the same value',
    'Action: {"tool": "search", "inputs": {"q": "cats", "q": "cats"}}',
    search,
  ],
  ['two names', 'Action: {"tool": "search", "name": "weather", "inputs": {"q": "cats"}}', refused],
  [
    'one name twice',
    'Action: {"tool": "search", "name": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'two arguments',
    'Action: {"tool": "search", "inputs": {"q": "cats"}, "arguments": {"q": "dogs"}}',
    refused,
  ],
  ['other keys', 'Action: {"action": "search", "action_input": {"q": "cats"}}', search],
  ['unknown keys only', 'Action: {"command": "search", "with": {"q": "cats"}}', refused],
  ['arguments beside the name', 'Action: {"tool": "search", "q": "cats"}', refused],
  [
    'arguments as a text',
    'Action: {"tool": "weather", "inputs": "{\\"city\\": \\"Rome\\", \\"days\\": 2}"}',
    rome,
  ],
  [
    'arguments as a broken text',
    'Action: {"tool": "weather", "inputs": "{\'city\': \'Rome\', \'days\': 2}"}',
    rome,
    'repair',
  ],
  ['arguments that are words', 'Action: {"tool": "weather", "inputs": "Rome please"}', refused],
  ['a word for the only text', 'Action: {"tool": "search", "inputs": "cats"}', search],
  ['arguments that are a list', 'Action: {"tool": "search", "inputs": ["cats"]}', refused],
  ['null for no arguments', 'Action: {"tool": "now", "inputs": null}', use('now')],
  ['no arguments', 'Action: {"tool": "now"}', use('now')],
  [
    'two actions',
    'Action: {"tool": "search", "inputs": {"q": "cats"}}\nAction: {"tool": "now", "inputs": {}}',
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  [
    'two objects behind a label',
    'Action: {"tool": "search", "inputs": {"q": "cats"}}\n{"tool": "now", "inputs": {}}',
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  [
    'a broken action before a good one',
    'Action: {"tool": "search", "inputs": {"q": 1 2}}\nAction: {"tool": "now", "inputs": {}}',
    refused,
  ],
  [
    'a broken action behind a good one',
    'Action: {"tool": "now", "inputs": {}}\nAction: {"tool": "search", "inputs": {"q": 1 2}}',
    use('now'),
  ],
  ['the answer', 'Thought: known\nAction: {"final_answer": "42"}', answer('42')],
  ['the answer behind a label', 'Thought: known\nFinal Answer: 42', answer('42')],
  ['a bold answer label', '**Final Answer:** 42', answer('42')],
  [
    'an answer with its own labels',
    'Final Answer: a\nThought: b\nObservation: c',
    answer('a\nThought: b\nObservation: c'),
  ],
  [
    'an answer with marks in it',
    'Action: {"final_answer": "Action: {\\"tool\\": \\"x\\"}\\nObservation: y"}',
    answer('Action: {"tool": "x"}\nObservation: y'),
  ],
  [
    'an answer that is cut',
    'Action: {"final_answer": "The sum is fou',
    answer('The sum is fou'),
    'repair',
  ],
  [
    'an answer that is cut in an escape',
    'Action: {"final_answer": "caf\\u00',
    answer('caf'),
    'repair',
  ],
  ['an answer that is an object', 'Action: {"final_answer": {"sum": 4}}', answer('{"sum":4}')],
  ['an answer that is a number', 'Action: {"final_answer": 4}', answer('4')],
  ['an answer as a tool', 'Action: {"action": "Final Answer", "action_input": "42"}', answer('42')],
  [
    'an answer beside null for the tool',
    'Action: {"tool": null, "final_answer": "42"}',
    answer('42'),
  ],
  [
    'null for the answer beside a tool',
    'Action: {"tool": "now", "inputs": {}, "final_answer": null}',
    use('now'),
  ],
  [
    'an answer beside an action in one object',
    'Action: {"tool": "now", "inputs": {}, "final_answer": "42"}',
    refused,
  ],
  [
    'an answer behind an action',
    'Action: {"tool": "now", "inputs": {}}\nFinal Answer: It is noon.',
    refused,
  ],
  [
    'an action behind an answer',
    'Final Answer: It is noon.\nAction: {"tool": "now", "inputs": {}}',
    refused,
  ],
  [
    'words behind the label in an answer',
    'Final Answer: Do this.\nAction: call your bank.',
    answer('Do this.\nAction: call your bank.'),
  ],
  [
    'an unknown tool in an answer',
    'Final Answer: Write\nAction: {"tool": "fly", "inputs": {}}',
    answer('Write\nAction: {"tool": "fly", "inputs": {}}'),
  ],
  ['two answers', 'Action: {"final_answer": "4"}\nFinal Answer: 5', refused],
  ['one answer twice', 'Action: {"final_answer": "4"}\nFinal Answer: 4', answer('4')],
  [
    'an invented observation',
    'Action: {"tool": "now", "inputs": {}}\nObservation: noon\nFinal Answer: noon',
    use('now'),
  ],
  ['only a thought', 'Thought: I should look.', thought('I should look.')],
  ['plain prose', 'The sum is 4.', answer('The sum is 4.')],
  ['words for an action', 'Action: ask somebody who knows', refused],
  ['no action', 'Action: None\nFinal Answer: 42', answer('42')],
  [
    'think tags',
    '<think>Action: {"tool": "now"}</think>\nAction: {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'a think tag that is only closed',
    'hm\n</think>\n\nAction: {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  [
    'the prototype as a key',
    'Action: {"tool": "search", "inputs": {"__proto__": {"polluted": true}, "q": "cats"}}',
    use('search', hostile),
  ],
  ['a name of the prototype', 'Action: {"tool": "toString", "inputs": {}}', use('toString')],
  ['the prototype as a name', 'Action: {"tool": "__proto__", "inputs": {}}', use('__proto__')],
  [
    'quotes that end the JSON too early',
    'Action: {"tool": "run", "inputs": {"code": "if (a) { f("}}") }"}}',
    refused,
  ],
  [
    'too deep',
    `Action: {"tool": "now", "inputs": ${'{"a":'.repeat(120)}1${'}'.repeat(121)}`,
    refused,
  ],
];

const flat: readonly Row[] = [
  ['plain', '{"scratchpad": "look", "tool": "search", "arguments": {"q": "cats"}}', search],
  ['without a scratchpad', '{"tool": "search", "arguments": {"q": "cats"}}', search],
  [
    'spread over lines',
    '{\n  "scratchpad": "look",\n  "tool": "search",\n  "arguments": {\n    "q": "cats"\n  }\n}\n',
    search,
  ],
  ['in a fence', '```json\n{"tool": "search", "arguments": {"q": "cats"}}\n```', search],
  [
    'in a fence behind prose',
    'Here it is:\n```json\n{"tool": "search", "arguments": {"q": "cats"}}\n```\n',
    search,
  ],
  [
    'behind prose',
    'Sure! {"tool": "search", "arguments": {"q": "cats"}}',
    answer('Sure! {"tool": "search", "arguments": {"q": "cats"}}'),
  ],
  ['an unknown tool', '{"tool": "fly", "arguments": {}}', use('fly')],
  [
    'an unknown tool in a fence behind prose',
    'Example:\n```json\n{"tool": "fly", "arguments": {}}\n```',
    answer('Example:\n```json\n{"tool": "fly", "arguments": {}}\n```'),
  ],
  ['the answer', '{"scratchpad": "known", "answer": "42"}', answer('42')],
  ['the answer in a fence', '```json\n{"answer": "42"}\n```', answer('42')],
  ['the answer behind prose', 'Sure: {"answer": "42"}', answer('42')],
  ['a long escape', '{"answer": "a\\n\\"b\\" \\u00e9 \\ud83d\\ude00"}', answer('a\n"b" é 😀')],
  [
    'an answer that is cut',
    '{"scratchpad": "s", "answer": "The capital is Par',
    answer('The capital is Par'),
    'repair',
  ],
  ['an answer without its bracket', '{"answer": "42"', answer('42'), 'repair'],
  ['an answer that is cut in half a pair', '{"answer": "hi \\ud83d', answer('hi'), 'repair'],
  ['an answer that is cut behind itself', '{"answer": "42", "to', refused],
  [
    'an answer with quotes in it',
    '{"answer": "He said "hi" to me"}',
    answer('He said "hi" to me'),
    'repair',
  ],
  ['an answer with a line break', '{"answer": "a\nb"}', answer('a\nb'), 'repair'],
  ['an answer that is a list', '{"answer": [1, 2]}', answer('[1,2]')],
  ['an answer that is false', '{"answer": false}', answer('false')],
  ['only a scratchpad', '{"scratchpad": "I should look."}', thought('I should look.')],
  ['a scratchpad that is cut', '{"scratchpad": "I should lo', refused],
  ['an answer and a tool', '{"tool": "now", "arguments": {}, "answer": "42"}', refused],
  ['an empty answer and a tool', '{"tool": "now", "arguments": {}, "answer": ""}', use('now')],
  ['none for a tool', '{"tool": "none", "arguments": {}, "answer": "42"}', answer('42')],
  ['an empty name for a tool', '{"tool": "", "answer": "42"}', answer('42')],
  ['none for a tool, and nothing else', '{"tool": "none", "arguments": {}}', refused],
  ['single quotes', "{'tool': 'search', 'arguments': {'q': 'cats'}}", search, 'repair'],
  [
    'single quotes around double ones',
    "{'tool': 'search', 'arguments': {'q': 'say \"hi\"'}}",
    use('search', { q: 'say "hi"' }),
    'repair',
  ],
  ['an apostrophe in single quotes', "{'tool': 'search', 'arguments': {'q': 'it's'}}", refused],
  ['a comma too many', '{"tool": "search", "arguments": {"q": "cats"},}', search, 'repair'],
  ['a comma missing', '{"tool": "search" "arguments": {"q": "cats"}}', search, 'repair'],
  [
    'a comment line',
    '{\n// find it\n"tool": "search", "arguments": {"q": "cats"}}',
    search,
    'repair',
  ],
  [
    'an address in a text',
    '{"tool": "search", "arguments": {"q": "http://x.y/*z*/"}}',
    use('search', { q: 'http://x.y/*z*/' }),
  ],
  [
    'Python literals',
    '{"tool": "run", "arguments": {"code": "None", "dry": False}, "answer": None}',
    use('run', { code: 'None', dry: false }),
    'repair',
  ],
  [
    'a bracket in a text',
    '{"tool": "search", "arguments": {"q": "a } b ] {"}}',
    use('search', { q: 'a } b ] {' }),
  ],
  [
    'a fence in a text',
    '{"tool": "run", "arguments": {"code": "```py\\nx\\n```"}}',
    use('run', { code: '```py\nx\n```' }),
  ],
  [
    'a fence in a text with line breaks',
    '{"tool": "run", "arguments": {"code": "```py\nx\n```"}}',
    use('run', { code: '```py\nx\n```' }),
    'repair',
  ],
  [
    'a label in a text',
    '{"tool": "run", "arguments": {"code": "a\\nObservation: b"}}',
    use('run', { code: 'a\nObservation: b' }),
  ],
  [
    'a tag in a text',
    '{"answer": "write <tool_call> or <think> here"}',
    answer('write <tool_call> or <think> here'),
  ],
  [
    'two objects',
    '{"tool": "search", "arguments": {"q": "cats"}}\n{"tool": "now", "arguments": {}}',
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  [
    'two objects with a comma',
    '{"tool": "search", "arguments": {"q": "cats"}}, {"tool": "now"}',
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  ['an action and then an answer', '{"tool": "now", "arguments": {}}\n{"answer": "noon"}', refused],
  ['two answers', '{"answer": "4"}\n{"answer": "5"}', refused],
  ['an invented observation', '{"tool": "now"}\nObservation: noon\n{"answer": "noon"}', use('now')],
  ['prose behind', '{"answer": "42"}\nI hope this helps.', answer('42')],
  ['a list of one', '[{"tool": "search", "arguments": {"q": "cats"}}]', search],
  ['an empty list', '[]', refused],
  ['an empty object', '{}', refused],
  ['another object', '{"city": "Rome"}', answer('{"city": "Rome"}')],
  ['data', '{"name": "Ann", "age": 3}', answer('{"name": "Ann", "age": 3}')],
  [
    'a list of data',
    '[{"name": "Ann", "age": 3}, {"name": "Bo", "age": 4}]',
    answer('[{"name": "Ann", "age": 3}, {"name": "Bo", "age": 4}]'),
  ],
  [
    'data in a fence',
    '```json\n{"name": "Ann", "age": 3}\n```\nThat is all.',
    answer('```json\n{"name": "Ann", "age": 3}\n```\nThat is all.'),
  ],
  ['data with the name of a tool', '{"name": "search", "q": "cats"}', refused],
  ['data behind a label', 'Action: {"name": "Ann", "age": 3}', refused],
  [
    'escaped as a whole',
    '{\\"tool\\": \\"search\\", \\"arguments\\": {\\"q\\": \\"cats\\"}}',
    search,
    'repair',
  ],
  ['a bracket of the wrong kind', '{"tool": "search", "arguments": {"q": "cats"]}', refused],
  [
    'a bracket missing in the middle',
    '{"tool": "weather", "arguments": {"city": "Rome", "units": {"t": ["c"}}}',
    refused,
  ],
  ['a quote missing', '{"tool": "search", "arguments": {"q": "cats}}', refused],
  ['a value missing', '{"tool": "weather", "arguments": {"city": , "days": 2}}', refused],
  ['an ellipsis', '{"tool": "search", "arguments": {"q": "cats", ...}}', refused],
  [
    'a number with a comma',
    '{"tool": "weather", "arguments": {"city": "Rome", "days": 2,5}}',
    refused,
  ],
  [
    'think tags',
    '<thinking>\nlook\n</thinking>\n{"tool": "search", "arguments": {"q": "cats"}}',
    search,
  ],
  [
    'a tool call in tags',
    '<tool_call>\n{"name": "search", "arguments": {"q": "cats"}}\n</tool_call>',
    search,
  ],
  [
    'nested as a function',
    '{"type": "function", "function": {"name": "search", "arguments": "{\\"q\\": \\"cats\\"}"}}',
    search,
  ],
  [
    'with an id',
    '{"id": "call_1", "type": "tool_use", "name": "search", "input": {"q": "cats"}}',
    search,
  ],
  [
    'a link first',
    '[Rome](https://rome.example) is nice.',
    answer('[Rome](https://rome.example) is nice.'),
  ],
  ['code in prose', 'Write `if (a) { b() }` there.', answer('Write `if (a) { b() }` there.')],
  ['the key twice at the top', '{"tool": "search", "tool": "now", "arguments": {}}', refused],
];

const list = '[{"name": "search", "arguments": {"q": "cats"}}, {"name": "now", "arguments": {}}]';
const both = uses(['search', { q: 'cats' }], ['now', {}]);

const steps: readonly Row[] = [
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

const lines: readonly Row[] = [
  ['plain', 'Thought: look\nAction: search\nAction Input: {"q": "cats"}', search],
  ['a stop behind it', 'Action: search\nAction Input: {"q": "cats"}\nObservation:', search],
  [
    'an invented chain',
    'Thought: look\nAction: now\nAction Input: {}\nObservation: noon\nThought: done\nFinal Answer: noon',
    use('now'),
  ],
  ['the answer', 'Thought: known\nFinal Answer: 42', answer('42')],
  ['an answer over lines', 'Final Answer:\n\n- a\n- b\n\n', answer('- a\n- b')],
  ['bold labels', '**Thought:** look\n**Action:** search\n**Action Input:** {"q": "cats"}', search],
  ['a blank line between', 'Action: search\n\nAction Input:\n{"q": "cats"}', search],
  ['an input in a fence', 'Action: search\nAction Input:\n```json\n{"q": "cats"}\n```', search],
  ['a name in backticks', 'Action: `search`\nAction Input: {"q": "cats"}', search],
  ['a name in brackets', 'Action: [search]\nAction Input: {"q": "cats"}', search],
  ['a name in quotes', 'Action: "search"\nAction Input: {"q": "cats"}', search],
  ['JSON on the line of the name', 'Action: search {"q": "cats"}', search],
  ['a call', 'Action: search({"q": "cats"})', search],
  ['a call without arguments', 'Action: now()', use('now')],
  ['a call with a word', 'Action: search("cats")', refused],
  ['a call with names', 'Action: weather(city="Rome", days=2)', refused],
  ['JSON behind the label', 'Action: {"tool": "search", "inputs": {"q": "cats"}}', search],
  ['no input', 'Action: now', use('now')],
  ['an empty input', 'Action: now\nAction Input:', use('now')],
  [
    'an empty input before an observation',
    'Action: now\nAction Input:\nObservation: noon',
    use('now'),
  ],
  [
    'a raw text',
    'Action: search\nAction Input: cats and dogs',
    use('search', { q: 'cats and dogs' }),
  ],
  ['a quoted text', 'Action: search\nAction Input: "cats"', search],
  [
    'a raw text over lines',
    'Action: search\nAction Input: cats\nand dogs\nObservation: x',
    use('search', { q: 'cats\nand dogs' }),
  ],
  ['a raw text for two parameters', 'Action: weather\nAction Input: Rome', refused],
  ['an unknown tool', 'Action: fly\nAction Input: {"to": "Rome"}', use('fly', { to: 'Rome' })],
  ['an unknown tool with a raw text', 'Action: fly\nAction Input: Rome', refused],
  ['words for a name', 'Action: I will search the web\nAction Input: {"q": "cats"}', refused],
  ['no action', 'Action: None\nAction Input: None\nFinal Answer: 42', answer('42')],
  ['the answer as an action', 'Action: Final Answer\nAction Input: 42', answer('42')],
  ['an input with single quotes', "Action: search\nAction Input: {'q': 'cats'}", search, 'repair'],
  [
    'an input with a comma too many',
    'Action: weather\nAction Input: {"city": "Rome", "days": 2,}',
    rome,
    'repair',
  ],
  [
    'an input with its bracket missing',
    'Action: search\nAction Input: {"q": "cats"',
    search,
    'repair',
  ],
  ['an input that is cut', 'Action: search\nAction Input: {"q": "ca', refused],
  ['a number that is cut', 'Action: weather\nAction Input: {"city": "Rome", "days": 2', refused],
  [
    'two actions',
    'Action: search\nAction Input: {"q": "cats"}\nThought: and\nAction: now\nAction Input: {}',
    uses(['search', { q: 'cats' }], ['now', {}]),
  ],
  ['an answer behind an action', 'Action: now\nAction Input: {}\nFinal Answer: noon', refused],
  ['an action behind an answer', 'Final Answer: noon\nAction: now\nAction Input: {}', refused],
  [
    'a section called action in an answer',
    'Final Answer: Next\nAction: buy milk\nThanks',
    answer('Next\nAction: buy milk\nThanks'),
  ],
  [
    'the whole action as the input',
    'Action: search\nAction Input: {"tool": "search", "inputs": {"q": "cats"}}',
    search,
  ],
  ['an input without an action', 'Action Input: {"q": "cats"}', refused],
  ['bare JSON of a tool', '{"name": "search", "arguments": {"q": "cats"}}', search],
  [
    'bare JSON of no tool',
    '{"name": "fly", "arguments": {}}',
    answer('{"name": "fly", "arguments": {}}'),
  ],
  ['the whole reply in a fence', '```\nThought: known\nFinal Answer: 42\n```\n', answer('42')],
  [
    'an answer with code in a fence',
    '```\nFinal Answer: so:\n```js\nAction: now\n```\n```',
    answer('so:\n```js\nAction: now\n```'),
  ],
  [
    'a fence that is no action',
    'So:\n```js\nconst a = { tool: 1 };\n```\nThat is it.',
    answer('So:\n```js\nconst a = { tool: 1 };\n```\nThat is it.'),
  ],
  ['only a thought', 'Thought: I now know the answer.', thought('I now know the answer.')],
  ['plain prose', 'The sum is 4.', answer('The sum is 4.')],
  [
    'Chinese',
    'Thought: 我需要查一下\nAction: search\nAction Input: {"q": "北京天气 🌤"}',
    use('search', { q: '北京天气 🌤' }),
  ],
  ['a smart input', 'Action: search\nAction Input: {“q”: “cats”}', search, 'repair'],
  [
    'think tags without an opening',
    'I think.\n</think>\nThought: look\nAction: search\nAction Input: {"q": "cats"}',
    search,
  ],
  [
    'a label within a line',
    'Thought: the Action: part comes next\nAction: now\nAction Input: {}',
    use('now'),
  ],
  ['a text in three quotes', 'Action: run\nAction Input: {"code": """\nx = 1\n"""}', refused],
  ['two inputs', 'Action: search\nAction Input: {"q": "a"} {"q": "b"}', refused],
  ['a raw text with the rest of JSON', 'Action: search\nAction Input: "cats"}', refused],
  ['JSON in backticks', 'Action: `{"tool": "now", "inputs": {}}`', use('now')],
  ['a bold line', '**Action: {"tool": "now", "inputs": {}}**', use('now')],
  [
    'a time in quotes in a text',
    'Action: search\nAction Input: {"q": "at "12:30" sharp"}',
    refused,
  ],
];

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

const behindNames: readonly Row[] = [
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

const invented: readonly Row[] = [
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

const musing = 'I have to think about this for quite a while, as it is not easy. '.repeat(6);

const drafts: readonly Row[] = [
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

const answers: readonly Row[] = [
  ['an answer of a shorter name', 'Thought: known\nAnswer: 42', answer('42')],
  ['an answer of a longer name', 'Thought: known\n**AI Answer:** 42', answer('42')],
  ['an answer behind a dash', 'Thought: known\nFinal answer - 42', answer('42')],
  ['an answer of a shorter name without a thought', 'Answer: 42', answer('Answer: 42')],
];

const endings: readonly Row[] = [
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

const json = '{"name": "search", "arguments": {"q": "cats"}}';
const asText = (name: string, text: string): Row => [name, text, answer(text)];

const inProse: readonly Row[] = [
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

const toSamples = (dialect: DialectName, rows: readonly Row[]): readonly Sample[] =>
  rows.map(([name, text, expected, by = 'local']) => ({
    dialect,
    name,
    text,
    expected,
    by: 'refused' in expected ? 'refused' : by,
  }));

/** Replies as models write them when they do not quite keep to the form. */
export const corpus: readonly Sample[] = [
  ...toSamples('action', action),
  ...toSamples('flat', flat),
  ...toSamples('steps', steps),
  ...toSamples('lines', lines),
  ...toSamples('lines', behindNames),
  ...toSamples('action', behindNames),
  ...toSamples('lines', inProse),
  ...toSamples('action', inProse),
  ...toSamples('flat', inProse),
  ...toSamples('steps', inProse),
  ...toSamples('lines', invented),
  ...toSamples('lines', drafts),
  ...toSamples('lines', answers),
  ...toSamples('lines', endings),
  ...toSamples('flat', endings),
  ...toSamples('action', answers),
  ...toSamples('action', drafts),
  ...toSamples('flat', drafts),
  ...toSamples('steps', drafts),
  ...toSamples('action', invented),
  ...toSamples('flat', invented),
  ...toSamples('steps', invented),
];
