import type {
  AssistantMessage,
  Message,
  ModelRequest,
  ToolDeclaration,
  ToolMessage,
  UserMessage,
} from '@millrace/core';

/** Declares a tool with string parameters, or with whatever schema is given for one. */
export const declare = (
  name: string,
  description: string,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = Object.keys(properties),
): ToolDeclaration => ({
  name,
  description,
  inputSchema: { type: 'object', properties, required },
});

export const calculator = declare(
  'calculator',
  'Evaluates an arithmetic expression: numbers, percentages, functions, units and their conversion.',
  {
    expression: {
      type: 'string',
      description: 'One arithmetic expression.',
      examples: ['17.5% * 2349', '5 miles to km', 'sqrt(2) * pi'],
    },
  },
);

export const clock = declare('clock', 'Tells the current date and time in a time zone.', {
  timeZone: {
    type: 'string',
    description: 'An IANA time zone.',
    examples: ['Europe/Berlin', 'Asia/Tokyo'],
  },
});

export const search = declare(
  'search_docs',
  'Searches the documentation for words and gives the passages that fit best.',
  {
    query: { type: 'string', description: 'Words to search for.', examples: ['backpressure'] },
    limit: { type: 'integer', minimum: 1, maximum: 10 },
  },
  ['query'],
);

export const readFile = declare(
  'read_file',
  'Reads a text file below the working directory, or lists a directory.',
  {
    path: {
      type: 'string',
      description: 'Path of the file, relative to the working directory.',
      examples: ['README.md', 'src/index.ts'],
    },
    lines: { type: 'integer', description: 'How many lines to read.' },
  },
  ['path'],
);

/** Four tools as the first run has them. */
export const fourTools = [calculator, clock, search, readFile];

/** The same four abilities in other words. */
export const otherTools = [
  declare('evaluate', 'Compute formulas. Understands % and converts units.', {
    formula: { type: 'string', title: 'Formula to compute' },
  }),
  declare(
    'getCurrentTime',
    'Returns the local time of a city. Without one, the time here.',
    { city: { type: ['string', 'null'], examples: ['Lima', 'New York'] } },
    [],
  ),
  declare('lookup', 'Find articles in the knowledge base.', {
    question: { type: 'string', minLength: 2 },
  }),
  declare('cat', 'Print the contents of a file.', {
    file: { anyOf: [{ type: 'string', description: 'Which file to print' }, { type: 'null' }] },
  }),
];

let serial = 0;
const nextId = (): string => `m${(serial += 1)}`;

export const user = (text: string): UserMessage => ({
  id: nextId(),
  role: 'user',
  content: [{ type: 'text', text }],
});

export const assistant = (text: string): AssistantMessage => ({
  id: nextId(),
  role: 'assistant',
  content: [{ type: 'text', text }],
});

interface Use {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly output?: string;
  readonly error?: string;
}

/** An assistant message that uses tools, and their results. */
export const used = (...uses: readonly Use[]): readonly [AssistantMessage, ToolMessage] => {
  const withIds = uses.map((use) => ({ ...use, id: nextId() }));
  return [
    {
      id: nextId(),
      role: 'assistant',
      content: withIds.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
    },
    {
      id: nextId(),
      role: 'tool',
      content: withIds.map(({ id, output = '', error }) => ({
        type: 'tool_result',
        toolUseId: id,
        content: [{ type: 'text', text: error ?? output }],
        isError: error !== undefined,
      })),
    },
  ];
};

/** A request with the four tools. */
export const ask = (
  messages: readonly Message[] | string,
  options: Partial<ModelRequest> = {},
): ModelRequest => ({
  tools: fourTools,
  ...options,
  messages: typeof messages === 'string' ? [user(messages)] : messages,
});
