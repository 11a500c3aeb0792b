import { describe, expect, it } from '@jest/globals';
import type { ModelRequest, ToolDeclaration } from 'millrace';
import {
  answerOf,
  callsOf,
  declare,
  requestOf,
  shopTools,
  tools,
  used,
  user,
} from './ask.test-support.js';

/** The calls for a question, as `name: argument, argument`. */
const callsFor = (question: string, given: readonly ToolDeclaration[]): readonly string[] =>
  callsOf(requestOf(question, { tools: given })).map(
    ({ name, input }) => `${name}: ${Object.values(input).map(String).join(', ')}`,
  );

type Row = readonly [question: string, ...calls: string[]];

const first: readonly Row[] = [
  [
    'What is 17.5% of 2,349, and what time is it in Tokyo?',
    'calculator: 17.5% of 2,349',
    'clock: Tokyo',
  ],
  [
    'What is 17.5% of 2349, what time is it in Tokyo, and how does backpressure work?',
    'calculator: 17.5% of 2349',
    'clock: Tokyo',
    'search_docs: backpressure',
  ],
  ['convert 5 miles to km', 'calculator: 5 miles to km'],
  ['(3+4)*2^5?', 'calculator: (3+4)*2^5'],
  ['the square root of 16', 'calculator: square root of 16'],
  ['What is sqrt(2) * pi?', 'calculator: sqrt(2) * pi'],
  ['What is `2 ** 10`?', 'calculator: 2 ** 10'],
  ['-5 + 3', 'calculator: -5 + 3'],
  ['please, could you tell me what 12 squared is?', 'calculator: 12 squared'],
  [
    'what is 3 plus 4, 5 times 6 and 10 minus 2?',
    'calculator: 3 plus 4',
    'calculator: 5 times 6',
    'calculator: 10 minus 2',
  ],
  ['1. What is 2+2?\n2. What time is it in Rome?', 'calculator: 2+2', 'clock: Rome'],
  ['What is x + 2 * 3?', 'search_docs: x 2 3'],
  ['What changed in the loop in 2020-2021?', 'search_docs: changed loop 2020-2021'],
  ['2 + 2 and the time in Rome', 'calculator: 2 + 2', 'clock: Rome'],
  ["what's the time in New York and in London?", 'clock: New York', 'clock: London'],
  ['What time is it in Tokyo? And in Paris?', 'clock: Tokyo', 'clock: Paris'],
  ['What is 2 + 2 and who wrote it?', 'calculator: 2 + 2', 'search_docs: wrote'],
  ['What is 7 * 6? Add 3 to it.', 'calculator: 7 * 6'],
  ['time in Tokyo, London and Paris', 'clock: Tokyo', 'clock: London', 'clock: Paris'],
  ['what time is it in tokyo', 'clock: tokyo'],
  ['what time is it?', 'clock: '],
  ['show me package.json', 'read_file: package.json'],
  ['show the first 5 lines of README.md', 'read_file: README.md, 5'],
  ['Compare README.md and package.json', 'read_file: README.md', 'read_file: package.json'],
  ['Read ../../etc/passwd', 'read_file: ../../etc/passwd'],
  ['How does backpressure work here?', 'search_docs: backpressure'],
  ['Search the docs for demand', 'search_docs: demand'],
  ['which licence is this under?', 'search_docs: licence under'],
  ['what is the weather in Paris?', 'search_docs: weather Paris'],
  ['interrupts', 'search_docs: interrupts'],
  ['Explain interrupts', 'search_docs: interrupts'],
  ['write a poem about the sea'],
  ['I am tired'],
  ['???'],
];

const shop: readonly Row[] = [
  ['Where is order ORD-77?', 'order_status: ORD-77'],
  ['What became of ORD-1 and ORD-2?', 'order_status: ORD-1', 'order_status: ORD-2'],
  ['what is the weather in Paris in fahrenheit', 'weather: Paris, fahrenheit'],
  ['weather in Oslo and Rome?', 'weather: Oslo', 'weather: Rome'],
  ['exchange 100 USD to EUR', 'exchange: 100, EUR, USD'],
  ['convert 100 from GBP to CHF', 'exchange: 100, CHF, GBP'],
  ["translate 'good morning, Ada' to French", 'translate: good morning, Ada, French'],
  ['Please translate good morning into German', 'translate: good morning, German'],
  ['send an email to ada@example.com: Lunch at noon', 'send_email: ada@example.com, Lunch at noon'],
  ['fetch https://example.com/a?b=1.', 'fetch_page: https://example.com/a?b=1'],
  ['switch the lights in the living room to 40', 'set_lights: living room, 40'],
  ['switch the lights in the kitchen to 400'],
  ['average 3, 5 and 9', 'average_of: 3,5,9'],
  ['list the users that are not active', 'list_users: false'],
  ['list the active users', 'list_users: true'],
  ['Is eve@evil.test a customer?'],
  ['who won the world cup?'],
  ['What is the weather in Oslo and say "hello world"', 'weather: Oslo'],
  ['What is the weather and translate "good night" to German', 'translate: good night, German'],
  [
    'Translate "good night" to French and send an email to ada@example.com',
    'translate: good night, French',
  ],
  [
    'Send an email to ada@example.com and translate "good night" to French',
    'translate: good night, French',
  ],
  ['Say "good night" and translate it to French', 'translate: good night, French'],
  [
    'send an email to ada@example.com: Lunch at noon, and bring bread',
    'send_email: ada@example.com, Lunch at noon, and bring bread',
  ],
];

describe('a question', () => {
  it.each(first)('leads to the tools of the first run: %s', (question, ...expected) => {
    expect(callsFor(question, tools)).toEqual(expected);
  });

  it.each(shop)('leads to tools of another program: %s', (question, ...expected) => {
    expect(callsFor(question, shopTools)).toEqual(expected);
  });

  it.each([
    "Don't send an email to ada@example.com: Lunch at noon",
    'If it rains in Oslo, send an email to ada@example.com: Take an umbrella',
    'Never fetch https://example.com',
  ])('that forbids something or has a condition leads to no call: %s', (question) => {
    expect(callsFor(question, shopTools)).toEqual([]);
  });

  it('with the same part twice leads to one call', () => {
    expect(callsFor('What is 2 + 2? What is 2 + 2?', tools)).toEqual(['calculator: 2 + 2']);
  });

  it('finds its tool among many', () => {
    const others = Array.from({ length: 200 }, (_, index) =>
      declare(`tool_${index}`, `Does the work of machine ${index}.`),
    );
    const found = callsFor('Where is order ORD-77?', [...others, ...shopTools]);
    expect(found).toEqual(['order_status: ORD-77']);
  });
});

describe('a result that asks for its call again', () => {
  const again = 'This has not happened. Call the tool again, with the same arguments.';
  const weather = { name: 'weather', input: { city: 'Oslo' } };
  const asked = user('What is the weather in Oslo?');
  const options = { tools: shopTools };

  it('repeats the call, and answers from its result', () => {
    const broken = [asked, ...used({ ...weather, output: again })];
    expect(callsOf(requestOf(broken, options))).toEqual([weather]);
    const done = [...broken, ...used({ ...weather, output: 'Snow.' })];
    expect(callsOf(requestOf(done, options))).toEqual([]);
    expect(answerOf(requestOf(done, options))).toContain('Snow.');
  });

  it('does not repeat it for ever', () => {
    const results = Array.from({ length: 5 }, () => used({ ...weather, output: again })).flat();
    expect(callsOf(requestOf([asked, ...results], options))).toEqual([]);
  });
});

describe('a tool choice', () => {
  const forced = (question: string, options: Partial<ModelRequest>) =>
    callsOf(requestOf(question, options)).map(({ name, input }) => [name, input]);

  it('forces the tool that it names', () => {
    const clock = { toolChoice: { name: 'clock' } };
    expect(forced('Rome', clock)).toEqual([['clock', { place: 'Rome' }]]);
    expect(forced('What is 2 + 2?', { toolChoice: { name: 'search_docs' } })).toEqual([
      ['search_docs', { query: '2 2' }],
    ]);
  });

  it('forces any tool, with values of the declaration if the text has none', () => {
    const required = { toolChoice: 'required', tools: shopTools.slice(0, 1) } as const;
    expect(forced('Hello!', required)).toEqual([['order_status', { orderId: 'ORD-1234' }]]);
  });

  it('forces no call whose arguments would be invented', () => {
    const add = [declare('add', 'Adds.', { amount: { type: 'number' } })];
    expect(forced('add', { toolChoice: 'required', tools: add })).toEqual([]);
  });

  it('forbids tools', () => {
    expect(forced('What is 2 + 2?', { toolChoice: 'none' })).toEqual([]);
  });
});
