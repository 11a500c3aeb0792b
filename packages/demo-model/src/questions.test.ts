import { describe, expect, it } from '@jest/globals';
import type { ToolDeclaration } from '@millrace/core';
import { declare, fourTools, otherTools, user } from './declarations.test-data.js';
import { respond } from './respond.js';

/** The tools that a question leads to at once, as `name: argument, argument`. */
const callsFor = (question: string, tools: readonly ToolDeclaration[]): readonly string[] => {
  const response = respond({ messages: [user(question)], tools });
  return response.type === 'answer'
    ? []
    : response.calls.map(({ name, input }) => `${name}: ${Object.values(input).join(', ')}`);
};

const four: readonly (readonly [string, ...string[]])[] = [
  [
    'What is 17.5% of 2,349, and what time is it in Tokyo?',
    'calculator: 17.5% * 2349',
    'clock: Asia/Tokyo',
  ],
  ['convert 5 miles to km', 'calculator: 5 miles to km'],
  ['how many seconds are there in 3 days?', 'calculator: 3 days to seconds'],
  ['(3+4)*2^5?', 'calculator: (3 + 4) * 2^5'],
  ["what's the square root of two times pi", 'calculator: sqrt(2) * pi'],
  ['show me package.json', 'read_file: package.json'],
  ['what does README.md say?', 'read_file: README.md'],
  ["what's the time in New York and in London?", 'clock: America/New_York', 'clock: Europe/London'],
  ['How does backpressure work here?', 'search_docs: backpressure'],
  ['divide 100 by 7 then add 3 to the result', 'calculator: 100 / 7'],
  ['which licence is this under?', 'search_docs: licence'],
  ['is 7 * 8 more than 50?', 'calculator: 7 * 8 > 50'],
  ["When it's noon in Berlin, what time is it in Tokyo?", 'clock: Asia/Tokyo'],
  ['half of 90', 'calculator: 0.5 * 90'],
  ['a dozen times two hundred', 'calculator: 12 * 200'],
  ['What time is it in Tokyo? And in Paris?', 'clock: Asia/Tokyo', 'clock: Europe/Paris'],
  ['2 + 2 and the time in Rome', 'calculator: 2 + 2', 'clock: Europe/Rome'],
  [
    'time in Tokyo, London and Paris',
    'clock: Asia/Tokyo',
    'clock: Europe/London',
    'clock: Europe/Paris',
  ],
  ['Tokyo time', 'clock: Asia/Tokyo'],
  ['how late is it in berlin', 'clock: Europe/Berlin'],
  ['current time in São Paulo', 'clock: America/Sao_Paulo'],
  ['What is the date in Sydney, Australia?', 'clock: Australia/Sydney'],
  ['what time is it?'],
  ['what time is it in Foobarville', 'clock: Foobarville'],
  ['what is the weather in Paris?', 'search_docs: weather Paris'],
  ['write a poem about the sea'],
  ['tell me a joke'],
  ['I am tired'],
  ['who won the 1998 world cup?', 'search_docs: won 1998 world cup'],
  [
    'what is 3 plus 4, 5 times 6 and 10 minus 2?',
    'calculator: 3 + 4',
    'calculator: 5 * 6',
    'calculator: 10 - 2',
  ],
  ['Compare README.md and package.json', 'read_file: README.md', 'read_file: package.json'],
  ['the readme please', 'read_file: README.md'],
  ["what's in the packages folder?", 'read_file: packages'],
  ['list the files', 'read_file: .'],
  ['show the first 5 lines of README.md', 'read_file: README.md, 5'],
  ['Read ../../etc/passwd', 'read_file: ../../etc/passwd'],
  ['What is Node.js?', 'search_docs: Node.js'],
  ['please, could you tell me what 12 squared is?', 'calculator: 12^2'],
  ['Search the docs for demand', 'search_docs: demand'],
  ["what's the time limit of a run?", 'search_docs: time limit run'],
  ['How does the calculator work?', 'search_docs: calculator'],
  ['how much is 2 dozen eggs at 30 cents', 'search_docs: 2 dozen eggs 30 cents'],
  ['What is x + 2 * 3?', 'search_docs: x 2 3'],
  ['does 2 + 2 equal 5?', 'calculator: 2 + 2 == 5'],
  ["What's 3 to the 4th?", 'calculator: 3^4'],
  ['100 F in C', 'calculator: 100 degF to degC'],
  ['20% off 80', 'calculator: 80 * (100 - 20) / 100'],
  ['Hi! What is 6*7?', 'calculator: 6 * 7'],
  ['1. What is 2+2?\n2. What time is it in Rome?', 'calculator: 2 + 2', 'clock: Europe/Rome'],
  ['- time in Oslo\n- 3*3', 'clock: Europe/Oslo', 'calculator: 3 * 3'],
  ['Explain interrupts; then 2^10', 'search_docs: interrupts', 'calculator: 2^10'],
  ['What changed in the loop in 2020-2021?', 'search_docs: changed loop 2020-2021'],
  ['How many days until Christmas?', 'search_docs: days until Christmas'],
  ['what time does the train to Berlin leave', 'search_docs: time train Berlin leave'],
  ['time on Christmas Island', 'clock: Indian/Christmas'],
  [
    'what time is it in Rome and how many days until Easter?',
    'clock: Europe/Rome',
    'search_docs: days until Easter',
  ],
  ['how many days are in february', 'search_docs: days february'],
  ['who holds the copyright in LICENSE?', 'read_file: LICENSE'],
  ['how many lines does CONTRIBUTING.md have', 'read_file: CONTRIBUTING.md'],
  ['is there a file called tsconfig.json', 'read_file: tsconfig.json'],
  ['constructor'],
  ['__proto__ + toString'],
  ['add 3'],
  ['???'],
];

describe('questions over the four tools', () => {
  it.each(four)('%s', (question, ...expected) => {
    const known = expected.length > 0 || !/^(?:constructor|__proto__)/u.test(question);
    if (known) expect(callsFor(question, fourTools)).toEqual(expected);
    else expect(() => callsFor(question, fourTools)).not.toThrow();
  });
});

const other: readonly (readonly [string, ...string[]])[] = [
  [
    'What is 17.5% of 2,349, and what time is it in Tokyo?',
    'evaluate: 17.5% * 2349',
    'getCurrentTime: Tokyo',
  ],
  ['convert 5 miles to km', 'evaluate: 5 miles to km'],
  [
    "what's the time in New York and in London?",
    'getCurrentTime: New York',
    'getCurrentTime: London',
  ],
  ['what time is it?', 'getCurrentTime: '],
  ['show me package.json', 'cat: package.json'],
  ['How does backpressure work here?', 'lookup: backpressure'],
  ['compute (1 + 2) / 3 and print notes.txt', 'evaluate: (1 + 2) / 3', 'cat: notes.txt'],
  ['How many days until Christmas?', 'lookup: days until Christmas'],
  ['is there a file called tsconfig.json', 'cat: tsconfig.json'],
  ['write a poem about the sea'],
];

describe('the same questions over tools in other words', () => {
  it.each(other)('%s', (question, ...expected) => {
    expect(callsFor(question, otherTools)).toEqual(expected);
  });
});

const unknownTools = [
  declare('order_status', 'Looks up where an order is.', {
    orderId: { type: 'string', pattern: '^ORD-\\d+$', examples: ['ORD-1234'] },
  }),
  declare(
    'weather',
    'Tells the weather of a city.',
    {
      city: { type: 'string', examples: ['Oslo'] },
      unit: { enum: ['celsius', 'fahrenheit'], default: 'celsius' },
    },
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
    subject: { type: 'string' },
  }),
  declare('fetch_page', 'Fetches a web page.', { url: { type: 'string', format: 'uri' } }),
  declare('set_lights', 'Switches the lights of a room.', {
    room: { enum: ['kitchen', 'living room'] },
    level: { type: 'integer', minimum: 0, maximum: 100 },
  }),
  declare('average_of', 'Averages numbers.', {
    numbers: { type: 'array', items: { type: 'number' } },
  }),
];

const further: readonly (readonly [string, ...string[]])[] = [
  ['Where is order ORD-77?', 'order_status: ORD-77'],
  ['What became of ORD-1 and ORD-2?', 'order_status: ORD-1', 'order_status: ORD-2'],
  ['what is the weather in Paris in fahrenheit', 'weather: Paris, fahrenheit'],
  ['weather in Oslo and Rome?', 'weather: Oslo', 'weather: Rome'],
  ['exchange 100 USD to EUR', 'exchange: 100, EUR, USD'],
  ['convert 100 from GBP to CHF', 'exchange: 100, CHF, GBP'],
  ["translate 'good morning' to French", 'translate: good morning, French'],
  ['Please translate good morning into German', 'translate: good morning, German'],
  ['send an email to ada@example.com: Lunch at noon', 'send_email: ada@example.com, Lunch at noon'],
  ['fetch https://example.com/a?b=1.', 'fetch_page: https://example.com/a?b=1'],
  ['switch the lights in the living room to 40', 'set_lights: living room, 40'],
  ['average 3, 5 and 9', 'average_of: 3,5,9'],
  ['who won the world cup?'],
];

describe('questions over tools that nobody has seen', () => {
  it.each(further)('%s', (question, ...expected) => {
    expect(callsFor(question, unknownTools)).toEqual(expected);
  });
});
