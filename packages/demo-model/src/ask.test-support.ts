import {
  type AssistantMessage,
  type Message,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  openDemand,
  type ToolDeclaration,
  type ToolMessage,
  type UserMessage,
} from 'millrace';
import { asapScheduler } from 'rxjs';
import { demoModel } from './index.js';

/** Declares a tool. */
export const declare = (
  name: string,
  description: string,
  properties: Readonly<Record<string, unknown>> = {},
  required: readonly string[] = Object.keys(properties),
): ToolDeclaration => ({
  name,
  description,
  inputSchema: { type: 'object', properties, required },
});

/** Four tools as the first run has them. */
export const tools: readonly ToolDeclaration[] = [
  declare('calculator', 'Computes an arithmetic expression: percentages, functions, units.', {
    expression: {
      type: 'string',
      description: 'One arithmetic expression.',
      examples: ['17.5% * 2349', '5 miles to km', 'sqrt(2) * pi'],
    },
  }),
  declare(
    'clock',
    'Tells the current date and time, here or in a city or time zone.',
    { place: { type: 'string', examples: ['Tokyo', 'New York', 'Europe/Berlin'] } },
    [],
  ),
  declare(
    'search_docs',
    'Searches the documentation for words and gives the passages that fit best.',
    {
      query: { type: 'string', description: 'Words to search for.' },
      limit: { type: 'integer', minimum: 1, maximum: 10 },
    },
    ['query'],
  ),
  declare(
    'read_file',
    'Reads a text file, or lists a directory.',
    {
      path: { type: 'string', examples: ['README.md', 'src/index.ts'] },
      lines: { type: 'integer', description: 'How many lines to read.' },
    },
    ['path'],
  ),
];

/** Tools of another program. */
export const shopTools: readonly ToolDeclaration[] = [
  declare('order_status', 'Looks up where an order is.', {
    orderId: { type: 'string', pattern: '^ORD-\\d+$', examples: ['ORD-1234'] },
  }),
  declare(
    'weather',
    'Tells the weather of a city.',
    { city: { type: 'string', examples: ['Oslo'] }, unit: { enum: ['celsius', 'fahrenheit'] } },
    ['city'],
  ),
  declare('exchange', 'Converts an amount of money from one currency to another.', {
    amount: { type: 'number' },
    to: { type: 'string', description: 'Currency', examples: ['EUR'] },
    from: { type: 'string', description: 'Currency', examples: ['USD'] },
  }),
  declare('translate', 'Translates a text into a language.', {
    text: { type: 'string' },
    language: { enum: ['French', 'German', 'Spanish'] },
  }),
  declare('send_email', 'Sends an email.', {
    to: { type: 'string', format: 'email' },
    body: { type: 'string', description: 'What to say' },
  }),
  declare('fetch_page', 'Fetches a web page.', { url: { type: 'string', format: 'uri' } }),
  declare('set_lights', 'Switches the lights of a room.', {
    room: { enum: ['kitchen', 'living room'] },
    level: { type: 'integer', minimum: 0, maximum: 100 },
  }),
  declare('average_of', 'Averages numbers.', {
    numbers: { type: 'array', items: { type: 'number' }, minItems: 2 },
  }),
  declare('list_users', 'Lists the users.', { active: { type: 'boolean' } }, []),
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

/** A tool call and what it returned. */
export interface Used {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly output?: string;
  readonly error?: string;
}

/** An assistant message with tool calls, and their results. */
export const used = (...calls: readonly Used[]): readonly [AssistantMessage, ToolMessage] => {
  const withIds = calls.map((call) => ({ ...call, id: nextId() }));
  return [
    {
      id: nextId(),
      role: 'assistant',
      content: withIds.map(({ id, name, input }) => ({ type: 'tool_call', id, name, input })),
    },
    {
      id: nextId(),
      role: 'tool',
      content: withIds.map(({ id, output = '', error }) => ({
        type: 'tool_result',
        toolCallId: id,
        content: [{ type: 'text', text: error ?? output }],
        isError: error !== undefined,
      })),
    },
  ];
};

/** A request, with the four tools unless it has others. */
export const requestOf = (
  messages: readonly Message[] | string,
  options: Partial<ModelRequest> = {},
): ModelRequest => ({
  tools,
  ...options,
  messages: typeof messages === 'string' ? [user(messages)] : messages,
});

export const contextOf = (given: Partial<ModelContext> = {}): ModelContext => ({
  demand: openDemand,
  scheduler: asapScheduler,
  report: () => undefined,
  stepId: 'call/1',
  random: () => 0,
  ...given,
});

export const chunksOf = (request: ModelRequest): readonly ModelChunk[] => {
  const chunks: ModelChunk[] = [];
  demoModel()
    .stream$(request, contextOf())
    .subscribe((chunk) => chunks.push(chunk));
  return chunks;
};

/** The calls that a model asks for. */
export const callsOf = (request: ModelRequest): readonly Used[] =>
  chunksOf(request).flatMap((chunk) =>
    chunk.type === 'toolCall' ? [{ name: chunk.name ?? '', input: Object(chunk.input) }] : [],
  );

/** What a model answers, if it calls no tool. */
export const answerOf = (request: ModelRequest): string =>
  chunksOf(request)
    .map((chunk) => (chunk.type === 'text' ? chunk.text : ''))
    .join('');
