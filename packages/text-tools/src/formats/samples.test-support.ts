import type { ToolDeclaration } from 'millrace';

/** What a reply comes to: thoughts, text and calls, or a refusal or a correction with this reason. */
export interface Expected {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly (readonly [name: string, input: unknown])[];
  readonly refused?: string;
  readonly malformed?: string;
}

export type Sample = readonly [name: string, reply: string, expected: Expected];

export const tools: readonly ToolDeclaration[] = [
  {
    name: 'weather',
    description: 'Tells the weather.',
    inputSchema: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer' },
        units: { type: 'object' },
        zip: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        note: {},
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

const rome = [['weather', { city: 'Rome', days: 2 }]] as const;
const romeAndNow = [...rome, ['now', {}]] as const;
const args = '{"city": "Rome", "days": 2}';

const harmony: readonly Sample[] = [
  [
    'a thought and an answer',
    '<|channel|>analysis<|message|>Simple sum.<|end|><|start|>assistant<|channel|>final<|message|>4.<|return|>',
    { thinking: 'Simple sum.', text: '4.' },
  ],
  [
    'a whole message with its start',
    '<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>4',
    { thinking: 'Hm.', text: '4' },
  ],
  [
    'a call',
    `<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>${args}<|call|>`,
    { thinking: 'I look.', calls: rome },
  ],
  [
    'the recipient before the channel',
    `<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>${args}<|call|>`,
    { calls: rome },
  ],
  [
    'a recipient at the start, as the template has the rest',
    ` to=functions.weather<|channel|>commentary <|constrain|>json<|message|>${args}`,
    { calls: rome },
  ],
  [
    'a call in the channel of thoughts',
    `<|channel|>analysis to=functions.now code<|message|>{}<|call|>`,
    { calls: [['now', {}]] },
  ],
  [
    'words before a call',
    `<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>commentary to=functions.now<|message|>{}<|call|>`,
    { text: 'Let me look.', calls: [['now', {}]] },
  ],
  [
    'two messages of text',
    '<|channel|>commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>Then.<|return|>',
    { text: 'First.\n\nThen.' },
  ],
  [
    'a thought without its end',
    '<|channel|>analysis<|message|>Hm.<|start|>assistant<|channel|>final<|message|>4',
    { thinking: 'Hm.', text: '4' },
  ],
  [
    'broken JSON, which core repairs or rejects',
    `<|channel|>commentary to=functions.weather<|message|>{'city': 'Rome', 'days': 2,}<|call|>`,
    { calls: [['weather', `{'city': 'Rome', 'days': 2,}`]] },
  ],
  [
    'a call that is cut off',
    '<|channel|>commentary to=functions.weather<|message|>{"city": "Ro',
    { refused: 'The tool call is not complete.' },
  ],
  [
    'marks in code',
    'It writes `<|channel|>analysis<|message|>` before thoughts.',
    { text: 'It writes `<|channel|>analysis<|message|>` before thoughts.' },
  ],
];

const cohere: readonly Sample[] = [
  [
    'a plan and two actions',
    `<|START_THINKING|>I look both up.<|END_THINKING|><|START_ACTION|>[
    {"tool_call_id": "0", "tool_name": "weather", "parameters": ${args}},
    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}
]<|END_ACTION|><|END_OF_TURN_TOKEN|>`,
    { thinking: 'I look both up.', calls: romeAndNow },
  ],
  [
    'an answer',
    '<|START_THINKING|>Easy.<|END_THINKING|><|START_RESPONSE|>It is 4.<|END_RESPONSE|>',
    { thinking: 'Easy.', text: 'It is 4.' },
  ],
  [
    'text marks',
    '<|START_THINKING|>Easy.<|END_THINKING|><|START_TEXT|>It is 4.<|END_TEXT|>',
    { thinking: 'Easy.', text: 'It is 4.' },
  ],
  [
    'one object instead of a list',
    `<|START_ACTION|>{"tool_name": "weather", "parameters": ${args}}<|END_ACTION|>`,
    { calls: rome },
  ],
  [
    'the older form',
    `Plan: I look it up.\nAction: \`\`\`json\n[\n    {\n        "tool_name": "weather",\n        "parameters": ${args}\n    }\n]\n\`\`\``,
    { text: 'Plan: I look it up.', calls: rome },
  ],
  [
    'an action that names no tool',
    '<|START_ACTION|>[{"tool_call_id": "0", "parameters": {}}]<|END_ACTION|>',
    { malformed: 'The call does not name its tool.' },
  ],
  [
    'a list without an action',
    '<|START_ACTION|>[{}]<|END_ACTION|>',
    { malformed: 'The call does not name its tool.' },
  ],
];

const glm: readonly Sample[] = [
  [
    'a call with typed values',
    '<think>I look.</think>\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>',
    { thinking: 'I look.', calls: rome },
  ],
  [
    'without line breaks, and two calls',
    '<tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>now</tool_call>',
    { calls: romeAndNow },
  ],
  [
    'a string that looks like a number, and an object',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>1984</arg_value>\n<arg_key>units</arg_key>\n<arg_value>{"t": "C"}</arg_value>\n</tool_call>',
    { calls: [['weather', { city: '1984', units: { t: 'C' } }]] },
  ],
  [
    'a string of two lines and an angle',
    '<tool_call>run\n<arg_key>code</arg_key>\n<arg_value>if a < b:\n  "c"</arg_value>\n<arg_key>dry</arg_key>\n<arg_value>True</arg_value>\n</tool_call>',
    { calls: [['run', { code: 'if a < b:\n  "c"', dry: true }]] },
  ],
  [
    'a value that may be null, and one without a type',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>zip</arg_key>\n<arg_value>null</arg_value>\n<arg_key>note</arg_key>\n<arg_value>sunny</arg_value>\n</tool_call>',
    { calls: [['weather', { city: 'Rome', zip: null, note: 'sunny' }]] },
  ],
  [
    'a value of the wrong type',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n<arg_value>two</arg_value>\n</tool_call>',
    { refused: "The parameter 'days' is not JSON, but its type is integer." },
  ],
  [
    'a value that is not closed',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</tool_call>',
    { refused: "The parameter 'city' is not closed." },
  ],
  [
    'a value that contains one, whose end would cut it short',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome <arg_value>x</arg_value> or not</arg_value>\n</tool_call>',
    { refused: "The parameter 'city' contains a parameter: its end is not clear." },
  ],
  [
    'a parameter twice',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value></tool_call>',
    { refused: "The parameter 'city' occurs twice." },
  ],
  [
    'cut off',
    '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>',
    { refused: 'The tool call is not complete.' },
  ],
];

const deepseek: readonly Sample[] = [
  [
    'V3 and R1',
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n\`\`\`json\n${args}\n\`\`\`<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n\`\`\`json\n{}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
    { calls: romeAndNow },
  ],
  [
    'V3.1, after text',
    `I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>${args}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    { text: 'I look.', calls: rome },
  ],
  [
    'without the last mark, which is a stop token',
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>${args}`,
    { calls: rome },
  ],
  [
    'in a thought that does not end',
    `<think>I look.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>${args}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    { thinking: 'I look.', calls: rome },
  ],
  [
    'a mention',
    'The token <｜tool▁calls▁begin｜> starts calls, and <｜tool▁call▁begin｜> is one.',
    { text: 'The token <｜tool▁calls▁begin｜> starts calls, and <｜tool▁call▁begin｜> is one.' },
  ],
  [
    'cut off',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Rome"',
    { refused: 'The tool call is not complete.' },
  ],
];

const python: readonly Sample[] = [
  ['a call', 'weather(city="Rome", days=2)', { calls: rome }],
  ['a namespace', 'functions.now()', { calls: [['now', {}]] }],
  ['a list of calls', '[weather(city="Rome", days=2), now()]', { calls: romeAndNow }],
  ['calls on lines', 'weather(city="Rome", days=2)\nnow()', { calls: romeAndNow }],
  ['after a thought', '<think>Hm.</think>\n\n[now()]', { thinking: 'Hm.', calls: [['now', {}]] }],
  [
    'all literals',
    `[weather(city='O\\'Hare "x" \\u00e9 (', units={'a': [1, -2.5, 1e3], "b": (True, False, None), 3: "x" "y"}, note="""a\nb""")]`,
    {
      calls: [
        [
          'weather',
          {
            city: 'O\'Hare "x" é (',
            units: { a: [1, -2.5, 1000], b: [true, false, null], '3': 'xy' },
            note: 'a\nb',
          },
        ],
      ],
    },
  ],
  [
    'in marks',
    'I look. <|python_start|>[weather(city="Rome", days=2)]<|python_end|>',
    { text: 'I look.', calls: rome },
  ],
  [
    'marks of LFM2',
    '<|tool_call_start|>[weather(city="Rome", days=2)]<|tool_call_end|>Checking.',
    { calls: rome, text: 'Checking.' },
  ],
  [
    'a fence of Gemma',
    'I look.\n```tool_code\nweather(city="Rome", days=2)\nnow()\n```',
    { text: 'I look.', calls: romeAndNow },
  ],
  [
    'a print around it',
    '```tool_code\nprint(default_api.weather(city="Rome", days=2))\n```',
    { calls: rome },
  ],
  [
    'an argument without a name',
    'weather("Rome")',
    { refused: 'It has an argument without a name: write name=value.' },
  ],
  [
    'code as an argument',
    '[weather(city=open("/etc/passwd"))]',
    { refused: 'It has an argument that is not a literal at "open(\\"/etc/passwd\\"))".' },
  ],
  [
    'an argument twice',
    '[weather(city="a", city="b")]',
    { refused: "It has the argument 'city' twice." },
  ],
  ['cut off', '[weather(city="Rome"', { refused: 'The tool call is not complete.' }],
  ['an explanation', 'weather(city) is a tool.', { text: 'weather(city) is a tool.' }],
  ['another function', 'print(1)', { text: 'print(1)' }],
  [
    'a call within text',
    'I would call weather(city="Rome") now.',
    { text: 'I would call weather(city="Rome") now.' },
  ],
  [
    'code',
    '```python\nweather(city="Rome")\n```',
    { text: '```python\nweather(city="Rome")\n```' },
  ],
  ['an array', '[1, 2]', { text: '[1, 2]' }],
  ['nothing', '', {}],
];

const others: readonly Sample[] = [
  [
    'Hermes',
    `I look.\n<tool_call>\n{"name": "weather", "arguments": ${args}}\n</tool_call>\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>`,
    { text: 'I look.', calls: romeAndNow },
  ],
  [
    'Hermes within a line',
    `I look. <tool_call>{"name": "weather", "arguments": ${args}}</tool_call>`,
    { text: 'I look.', calls: rome },
  ],
  [
    'Hermes with a closing mark in a string',
    '<tool_call>{"name": "run", "arguments": {"code": "</tool_call>"}}</tool_call>',
    { calls: [['run', { code: '</tool_call>' }]] },
  ],
  [
    'Hermes with arguments as a string, and without any',
    '<tool_call>{"name": "run", "arguments": "{\\"code\\": \\"1\\"}"}</tool_call><tool_call>{"name": "now"}</tool_call>',
    {
      calls: [
        ['run', { code: '1' }],
        ['now', {}],
      ],
    },
  ],
  [
    'Hermes with a quote too many',
    '<tool_call>{"name": "run", "arguments": {"code": "say "hi"}}</tool_call>',
    { calls: [['run', '{"code": "say "hi"}}']] },
  ],
  [
    'Hermes with an unknown tool at the start of a line, which core answers',
    '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
    { calls: [['fly', {}]] },
  ],
  [
    'Hermes with an unknown tool in a line',
    'Such as <tool_call>{"name": "fly", "arguments": {}}</tool_call>.',
    { text: 'Such as <tool_call>{"name": "fly", "arguments": {}}</tool_call>.' },
  ],
  [
    'a mention of a tag',
    'The <tool_call> tag starts one.',
    { text: 'The <tool_call> tag starts one.' },
  ],
  [
    'Hermes in a fence',
    '```xml\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\n```\nDone.',
    { text: '```xml\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\n```\nDone.' },
  ],
  [
    'Hermes that is not JSON',
    '<tool_call>{"name": </tool_call>',
    { malformed: 'The call does not name its tool.' },
  ],
  [
    'Qwen3-Coder',
    '<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>',
    { calls: rome },
  ],
  [
    'a value that contains one, whose end would cut it short',
    '<tool_call>\n<function=weather>\n<parameter=city>\nRome <function=now><parameter=x>1</parameter></function></parameter>\n</function>\n</tool_call>',
    {
      refused: "The parameter 'city' contains a parameter: its end is not clear.",
      text: '</parameter>\n</function>\n</tool_call>',
    },
  ],
  ['Llama 3.1', `<function=weather>${args}</function>`, { calls: rome }],
  [
    'MiniMax',
    '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Rome</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
    { calls: rome },
  ],
  [
    'Mistral with a list',
    `[TOOL_CALLS][{"name": "weather", "arguments": ${args}}, {"name": "now", "arguments": {}}]`,
    { calls: romeAndNow },
  ],
  [
    'Mistral with names before arguments',
    `[TOOL_CALLS]weather[ARGS]${args}[TOOL_CALLS]now[CALL_ID]abc123[ARGS]{}`,
    { calls: romeAndNow },
  ],
  ['Mistral without a separator', `[TOOL_CALLS]weather${args}`, { calls: rome }],
  [
    'Llama 3 with JSON',
    `<|python_tag|>{"name": "weather", "parameters": ${args}}; {"name": "now", "parameters": {}}<|eom_id|>`,
    { calls: romeAndNow },
  ],
  [
    'Llama 3 with a built-in tool',
    '<|python_tag|>run.call(code="1")',
    { calls: [['run', { code: '1' }]] },
  ],
  [
    'Phi',
    `<|tool_call|>[{"name": "weather", "arguments": ${args}}]<|/tool_call|>`,
    { calls: rome },
  ],
  [
    'Kimi',
    `I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>${args}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`,
    { text: 'I look.', calls: romeAndNow },
  ],
];

const thoughts: readonly Sample[] = [
  ['think', '<think>\nHm.\n</think>\n\nYes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['thinking', '<thinking>Hm.</thinking>Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['reasoning', ' <reasoning>Hm.</reasoning> Yes. ', { thinking: 'Hm.', text: 'Yes. ' }],
  ['Mistral', '[THINK]Hm.[/THINK]Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['Kimi', '◁think▷Hm.◁/think▷Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['in capitals', '<THINK>Hm.</THINK>Yes.', { thinking: 'Hm.', text: 'Yes.' }],
  ['empty', '<think>\n\n</think>\n\nYes.', { text: 'Yes.' }],
  ['two', '<think>A.</think>\n<think>B.</think>\nYes.', { thinking: 'A.\n\nB.', text: 'Yes.' }],
  ['never closed', '<think>Hm. < 3', { thinking: 'Hm. < 3' }],
  [
    'opened by the template',
    'Hm.\nWell.\n</think>\n\nYes.',
    { thinking: 'Hm.\nWell.', text: 'Yes.' },
  ],
  ['opened by the template, at the end', 'Hm.</think>', { thinking: 'Hm.' }],
  ['later', 'See <think>this</think>.', { text: 'See <think>this</think>.' }],
  [
    'in code',
    'Write:\n```\n<think>a\n</think>\n```\nand `</think>`\n',
    { text: 'Write:\n```\n<think>a\n</think>\n```\nand `</think>`\n' },
  ],
  [
    'a second closing tag',
    '<think>a</think>b\n</think>\nc',
    { thinking: 'a', text: 'b\n</think>\nc' },
  ],
  ['no thought', '  Yes < 3 & `a` ~ [b]\n\n', { text: '  Yes < 3 & `a` ~ [b]\n\n' }],
];

/** Replies in the format of each family, written for this corpus. */
export const corpus: Readonly<Record<string, readonly Sample[]>> = {
  'gpt-oss': harmony,
  'Command R': cohere,
  GLM: glm,
  DeepSeek: deepseek,
  Python: python,
  others,
  thoughts,
};
