import { describe, expect, it } from '@jest/globals';
import type { Message, ModelRequest } from '@millrace/core';
import { ask, assistant, clock, declare, fourTools, used, user } from './declarations.test-data.js';
import { respond } from './respond.js';

const callsOf = (request: ModelRequest): readonly unknown[] => {
  const response = respond(request);
  return response.type === 'act' ? response.calls.map(({ input }) => input) : [];
};

const answerTo = (request: ModelRequest): string => {
  const response = respond(request);
  return response.type === 'answer' ? response.text : `it used ${JSON.stringify(response.calls)}`;
};

const calculation = (expression: string, output: string) => ({
  name: 'calculator',
  input: { expression },
  output,
});

const time = (timeZone: string, output: string) => ({ name: 'clock', input: { timeZone }, output });

describe('several parts', () => {
  const question = user('What is 17.5% of 2,349, and what time is it in Tokyo?');
  const both = [
    question,
    ...used(calculation('17.5% * 2349', '411.075'), time('Asia/Tokyo', '22:15')),
  ];

  it('are answered in the order they were asked', () => {
    expect(answerTo(ask(both))).toBe('17.5% * 2349 = 411.075. Asia/Tokyo: 22:15.');
  });

  it('are answered from sentences as they are', () => {
    const told = 'It is 22:15 on Friday in Tokyo.';
    expect(answerTo(ask([user('time in Tokyo?'), ...used(time('Asia/Tokyo', told))]))).toBe(told);
  });

  it('are explained', () => {
    expect(respond(ask([question])).thinking).toBe(
      '2 parts: “What is 17.5% of 2,349” → calculator; “what time is it in Tokyo” → clock. ' +
        'Using calculator("17.5% * 2349"), clock("Asia/Tokyo"). ',
    );
  });

  it('are at most twelve', () => {
    const many = Array.from({ length: 20 }, (_, index) => `What is ${index} + 1?`).join(' ');
    expect(callsOf(ask(many))).toHaveLength(12);
    const answered = Array.from({ length: 12 }, (_, index) =>
      calculation(`${index} + 1`, `${index + 1}`),
    );
    expect(answerTo(ask([user(many), ...used(...answered)]))).toContain('first 12 parts');
  });

  it('that are the same are one call', () => {
    expect(callsOf(ask('What is 2 + 2? What is 2 + 2?'))).toEqual([{ expression: '2 + 2' }]);
  });
});

describe('parts that need an earlier result', () => {
  const question = user('Divide 100 by 8, then add 3 to the result. Multiply it by 2.');
  const first = [question, ...used(calculation('100 / 8', '100 / 8 = 12.5'))];
  const second = [...first, ...used(calculation('12.5 + 3', '{"result": 15.5}'))];
  const third = [...second, ...used(calculation('15.5 * 2', '31'))];

  it('follow one after the other', () => {
    expect(callsOf(ask([question]))).toEqual([{ expression: '100 / 8' }]);
    expect(callsOf(ask(first))).toEqual([{ expression: '12.5 + 3' }]);
    expect(callsOf(ask(second))).toEqual([{ expression: '15.5 * 2' }]);
    expect(answerTo(ask(third))).toBe('100 / 8 = 12.5. 12.5 + 3 = 15.5. 15.5 * 2 = 31.');
  });

  it('are left out where that failed', () => {
    const failed = used({
      name: 'calculator',
      input: { expression: '100 / 8' },
      error: 'Too hard',
    });
    expect(answerTo(ask([question, ...failed]))).toBe(
      'The calculator could not answer “Divide 100 by 8”: Too hard. ' +
        'I left out “add 3 to the result”, which needs a result that is not there. ' +
        'I left out “Multiply it by 2”, which needs a result that is not there.',
    );
  });

  it('may begin with a value that the question gives', () => {
    const question = user('Start with 100, subtract 25%, then add 5');
    expect(callsOf(ask([question]))).toEqual([{ expression: '100 * (100 - 25) / 100' }]);
    const first = [question, ...used(calculation('100 * (100 - 25) / 100', '75'))];
    expect(callsOf(ask(first))).toEqual([{ expression: '75 + 5' }]);
  });

  it('may ask about the text that was read', () => {
    const question = user('Read package.json and tell me its version');
    const file = '{\n  "name": "x",\n  "version": "1.2.3",\n  "private": true\n}';
    const read = used({ name: 'read_file', input: { path: 'package.json' }, output: file });
    expect(callsOf(ask([question]))).toEqual([{ path: 'package.json' }]);
    expect(answerTo(ask([question, ...read]))).toContain(
      'On “tell me its version”:\n"version": "1.2.3",',
    );
  });
});

describe('what is missing', () => {
  const asked = [user('What time is it?'), assistant('…')];

  it('is asked for, with an example', () => {
    expect(answerTo(ask('What time is it?'))).toBe(
      'The clock needs the time zone (An IANA time zone). Which one do you mean? For example “Europe/Berlin”.',
    );
  });

  it('is taken from the next message', () => {
    expect(callsOf(ask([...asked, user('Tokyo')]))).toEqual([{ timeZone: 'Asia/Tokyo' }]);
  });

  it('is asked for one by one', () => {
    const tools = [
      declare('send_email', 'Sends an email.', {
        to: { type: 'string', format: 'email' },
        body: { type: 'string', description: 'What to say' },
      }),
    ];
    const history = [user('Send an email'), assistant('…')];
    expect(answerTo({ tools, messages: history.slice(0, 1) })).toContain('needs the to.');
    const second = [...history, user('ada@example.com')];
    expect(answerTo({ tools, messages: second })).toContain('needs the body (What to say).');
    const third = [...second, assistant('…'), user('Lunch is ready')];
    expect(callsOf({ tools, messages: third })).toEqual([
      { to: 'ada@example.com', body: 'Lunch is ready' },
    ]);
  });

  it('holds up no other part', () => {
    const question = user('What time is it? And what is 6 * 7?');
    expect(callsOf(ask([question]))).toEqual([{ expression: '6 * 7' }]);
    expect(answerTo(ask([question, ...used(calculation('6 * 7', '42'))]))).toMatch(
      /^The clock needs the time zone.* 6 \* 7 = 42\.$/u,
    );
  });
});

describe('a follow-up', () => {
  it('uses the tool of the turn before', () => {
    const history = [
      user('What time is it in Tokyo?'),
      ...used(time('Asia/Tokyo', '22:15')),
      assistant('…'),
    ];
    expect(callsOf(ask([...history, user('and in Paris?')]))).toEqual([
      { timeZone: 'Europe/Paris' },
    ]);
    expect(callsOf(ask([...history, user('What about new york')]))).toEqual([
      { timeZone: 'America/New_York' },
    ]);
  });

  it('goes on with the value of the turn before', () => {
    const history = [user('6 * 7'), ...used(calculation('6 * 7', '42')), assistant('…')];
    expect(callsOf(ask([...history, user('multiply that by 2')]))).toEqual([
      { expression: '42 * 2' },
    ]);
    expect(callsOf(ask([...history, user('and divided by 4?')]))).toEqual([
      { expression: '42 / 4' },
    ]);
  });

  it('needs a turn before', () => {
    expect(answerTo(ask('multiply that by 2'))).toContain('needs a result that is not there');
  });
});

describe('a tool that failed', () => {
  const question = user('Show me the readme');
  const failed = [
    question,
    ...used({ name: 'read_file', input: { path: 'README.md' }, error: 'There is no README.md' }),
  ];

  it('is asked once more where the words have another reading', () => {
    expect(callsOf(ask(failed))).toEqual([{ path: 'README' }]);
    const read = used({ name: 'read_file', input: { path: 'README' }, output: 'Hello' });
    expect(answerTo(ask([...failed, ...read]))).toBe('README: Hello.');
  });

  it('is asked no third time', () => {
    const again = used({ name: 'read_file', input: { path: 'README' }, error: 'Nor that' });
    expect(answerTo(ask([...failed, ...again]))).toBe(
      'The tool read_file could not answer “Show me the readme”: There is no README.md.',
    );
  });
});

describe('a call that was edited on its way', () => {
  it('is answered by what came back in its place', () => {
    const edited = used(calculation('2 + 2', '4'), time('UTC', '12:00'));
    const request = ask([user('What is 1 + 1? And what time is it in Rome?'), ...edited]);
    expect(answerTo(request)).toBe('1 + 1 = 4. UTC: 12:00.'.replace('UTC', 'Europe/Rome'));
  });

  it('is not made for ever where another tool came back', () => {
    const other = () => used({ name: 'other', input: {}, output: 'else' });
    const messages = [user('What is 1 + 1?'), ...Array.from({ length: 5 }, other).flat()];
    expect(respond(ask(messages)).type).toBe('answer');
  });
});

describe('without tools', () => {
  const question = user('What is 6 * 7, and what time is it in Rome?');
  const half = [question, ...used(calculation('6 * 7', '42'))];
  const closing = [...half, user('All steps are used up. Answer now, without tools.')];

  it('answers the question before the closing instruction', () => {
    expect(answerTo(ask(closing, { toolChoice: 'none' }))).toBe(
      '6 * 7 = 42. Without tools I cannot answer “what time is it in Rome”.',
    );
  });

  it('answers from the results where no tools are declared any more', () => {
    const { messages } = ask(closing);
    expect(answerTo({ messages })).toBe(
      '6 * 7 = 42. I have no tool for “what time is it in Rome”.',
    );
  });

  it('declines honestly', () => {
    expect(answerTo({ messages: [question] })).toMatch(
      /I cannot answer .*rules and retrieval, not a language model, and I have no tools here\./u,
    );
  });
});

describe('a caller who insists on a tool', () => {
  it('gets the one that is named', () => {
    const request = ask('Rome', { toolChoice: { name: 'clock' } });
    expect(respond(request)).toMatchObject({
      type: 'act',
      calls: [{ name: 'clock', input: { timeZone: 'Europe/Rome' } }],
    });
  });

  it('gets any, with values of the declaration where the text has none', () => {
    const request = ask('Hello!', { tools: [clock], toolChoice: 'required' });
    expect(callsOf(request)).toEqual([{ timeZone: 'Europe/Berlin' }]);
  });

  it('gets a question where there is no value', () => {
    const tools = [declare('add', 'Adds.', { amount: { type: 'number' } })];
    expect(answerTo(ask('add', { tools, toolChoice: 'required' }))).toContain('needs the amount');
  });

  it('gets an answer once there are results', () => {
    const messages = [user('Rome'), ...used(time('Europe/Rome', '12:00'))];
    expect(answerTo(ask(messages, { toolChoice: { name: 'clock' } }))).toContain('12:00');
  });
});

describe('a search', () => {
  const searched = (question: string, query: string, output: string): readonly Message[] => [
    user(question),
    ...used({ name: 'search_docs', input: { query }, output }),
  ];

  it('is answered with passages and their sources', () => {
    const found = '1. docs/flow.md:3 › Flow (relevance 90 %)\nBackpressure is a level gate.';
    expect(answerTo(ask(searched('How does backpressure work?', 'backpressure', found)))).toBe(
      '“Backpressure is a level gate.” (docs/flow.md:3 › Flow)',
    );
  });

  it('goes on with what was searched before', () => {
    expect(callsOf(ask('What is the loop and how does it end?'))).toEqual([
      { query: 'loop' },
      { query: 'loop end' },
    ]);
  });

  it('says so where the passages hold too few of the words', () => {
    const found = 'docs/hello.md\nHello, world.';
    expect(
      answerTo(ask(searched('who won the 1998 world cup?', 'won 1998 world cup', found))),
    ).toBe(
      'The documents do not seem to answer “who won the 1998 world cup”. The nearest passage is in docs/hello.md.',
    );
  });
});

describe('a conversation about nothing', () => {
  it('begins with what this is, and questions that work', () => {
    for (const text of ['Hello!', 'help', 'What can you do?', 'who are you?', '']) {
      const introduction = answerTo(ask(text));
      expect(introduction).toContain('rules and retrieval, not a language model');
      const tried = [...introduction.matchAll(/Try “([^”]+)”/gu)].map(
        ([, example = '']) => example,
      );
      expect(tried).toHaveLength(4);
      const names = tried.map((example) => {
        const response = respond(ask(example));
        return response.type === 'act' ? response.calls[0]?.name : undefined;
      });
      expect(names).toEqual(fourTools.map(({ name }) => name));
    }
  });

  it('ends politely', () => {
    expect(answerTo(ask('Thanks!'))).toBe('You are welcome.');
    expect(answerTo(ask('ok, bye'))).toBe('Goodbye.');
  });

  it('declines what is no question for its tools', () => {
    expect(answerTo(ask('Write a poem about the sea.'))).toMatch(
      /^I cannot answer “Write a poem about the sea”: I am rules and retrieval, not a language model/u,
    );
  });

  it('says what it left out', () => {
    const question = user("When it's noon in Berlin, what time is it in Tokyo?");
    expect(answerTo(ask([question, ...used(time('Asia/Tokyo', '22:15'))]))).toBe(
      "I cannot take “When it's noon in Berlin” into account. Asia/Tokyo: 22:15.",
    );
  });
});
