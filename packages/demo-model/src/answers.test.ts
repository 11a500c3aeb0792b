import { describe, expect, it } from '@jest/globals';
import type { Message } from 'millrace';
import {
  answerOf,
  assistant,
  callsOf,
  declare,
  requestOf,
  shopTools,
  tools,
  used,
  user,
} from './ask.test-support.js';

const computed = (expression: string, output: string) => ({
  name: 'calculator',
  input: { expression },
  output,
});

const inputsOf = (messages: readonly Message[] | string, given = tools): readonly unknown[] =>
  callsOf(requestOf(messages, { tools: given })).map(({ input }) => input);

describe('an answer', () => {
  const question = user('What is 17.5% of 2,349, and what time is it in Tokyo?');
  const time = { name: 'clock', input: { place: 'Tokyo' } };

  it('has a sentence for each part, in the order of the question', () => {
    const results = used(
      { ...time, output: 'It is 22:15 on Friday in Tokyo.' },
      computed('17.5% of 2,349', '411.075'),
    );
    expect(answerOf(requestOf([question, ...results]))).toBe(
      '17.5% of 2,349 = 411.075. It is 22:15 on Friday in Tokyo.',
    );
  });

  it('reports the error of a tool, and does not call it again', () => {
    const results = used(computed('17.5% of 2,349', '411.075'), {
      ...time,
      error: 'There is no clock.',
    });
    expect(answerOf(requestOf([question, ...results]))).toBe(
      '17.5% of 2,349 = 411.075. clock failed for “what time is it in Tokyo”: There is no clock.',
    );
  });

  it('reads flat JSON, and says what a bare value belongs to', () => {
    const read = (output: string): string => {
      const question = user('Where is order ORD-7?');
      const result = used({ name: 'order_status', input: { orderId: 'ORD-7' }, output });
      return answerOf(requestOf([question, ...result], { tools: shopTools }));
    };
    expect(read('{"status":"sent","days":2}')).toBe('ORD-7: status: sent, days: 2.');
    expect(read('sent')).toBe('ORD-7: sent.');
    expect(read('ORD-7 was sent')).toBe('ORD-7 was sent.');
    expect(read('')).toBe('order_status returned nothing for “Where is order ORD-7”.');
  });

  it('shows the lines of a long text that have the words of the question', () => {
    const read = (question: string): string => {
      const output = `{\n  "name": "x",\n  "version": "1.2.3"\n}`;
      const result = used({ name: 'read_file', input: { path: 'package.json' }, output });
      return answerOf(requestOf([user(question), ...result]));
    };
    expect(read('Which version does package.json have?')).toBe(
      'package.json:\n  "version": "1.2.3"\n… (3 more lines)',
    );
    expect(read('Show me package.json')).toMatch(/^package\.json:\n\{\n {2}"name": "x",\n/u);
  });

  it('to a greeting says what it is and which tools it has', () => {
    for (const text of ['Hello!', 'help', 'What can you do?', 'who are you?', '']) {
      const introduction = answerOf(requestOf(text));
      expect(introduction).toMatch(/I am a set of rules, not a language model/u);
      for (const { name } of tools) expect(introduction).toContain(`- ${name}: `);
    }
  });

  it('says what it cannot do', () => {
    expect(answerOf(requestOf('Write a poem about the sea.'))).toBe(
      'I cannot answer “Write a poem about the sea”: I am a set of rules, not a language model, and none of my tools ' +
        'fits. My tools: calculator, clock, search_docs, read_file.',
    );
    expect(answerOf(requestOf('What is 6 * 7?', { tools: [] }))).toMatch(
      /I have no tools here\.$/u,
    );
  });

  it.each([
    ['What is 6 * 7 and sing a song?', '6 * 7 = 42. I have no tool for “sing a song”.'],
    ['Sing a long song, 6 * 7', 'I have no tool for “Sing a long song”. 6 * 7 = 42.'],
    ['What is 6 * 7, exactly?', '6 * 7 = 42.'],
  ])('names each part that no tool fits: %s', (text, answer) => {
    const given = tools.filter(({ name }) => name !== 'search_docs');
    const messages = [user(text), ...used(computed('6 * 7', '42'))];
    expect(answerOf(requestOf(messages, { tools: given }))).toBe(answer);
  });

  it('says what it left out, and why', () => {
    expect(answerOf(requestOf('If it rains, tell me the time.'))).toBe(
      'I left out “If it rains, tell me the time”, because I do not understand conditions and exceptions.',
    );
  });

  it('comes from the results that there are when no tool may be called any more', () => {
    const half = [question, ...used(computed('17.5% of 2,349', '411.075'))];
    const closing = [
      ...half,
      user('The maximum number of iterations is reached. Answer now, without tools.'),
    ];
    expect(answerOf(requestOf(closing, { toolChoice: 'none' }))).toBe(
      '17.5% of 2,349 = 411.075. I did not get to “what time is it in Tokyo”.',
    );
    expect(answerOf(requestOf(closing, { tools: [] }))).toBe('17.5% of 2,349: 411.075.');
  });
});

describe('a part that needs an earlier result', () => {
  const question = user('What is 100 / 8? Then what is the result * 3? Then add 4 - that.');
  const once = [question, ...used(computed('100 / 8', '100 / 8 = 12.5'))];
  const twice = [...once, ...used(computed('12.5 * 3', '{"result": 37.5}'))];
  const all = [...twice, ...used(computed('4 - 37.5', '-33.5'))];

  it('waits for it', () => {
    expect(inputsOf([question])).toEqual([{ expression: '100 / 8' }]);
    expect(inputsOf(once)).toEqual([{ expression: '12.5 * 3' }]);
    expect(inputsOf(twice)).toEqual([{ expression: '4 - 37.5' }]);
    expect(inputsOf(all)).toEqual([]);
    expect(answerOf(requestOf(all))).toContain('4 - 37.5 = -33.5.');
  });

  it('is left out if that failed', () => {
    const failed = used({ name: 'calculator', input: { expression: '100 / 8' }, error: 'Broken' });
    expect(answerOf(requestOf([question, ...failed]))).toBe(
      'calculator failed for “What is 100 / 8”: Broken. ' +
        'I left out “what is the result * 3”, because it needs a result that I do not have. ' +
        'I left out “add 4 - that”, because it needs a result that I do not have.',
    );
  });

  it('may pass on text, or its one number', () => {
    const fetched = (question: string, output: string) => [
      user(question),
      ...used({ name: 'fetch_page', input: { url: 'https://example.com' }, output }),
    ];
    const translated = fetched('Fetch https://example.com then translate it to French', 'Hello');
    expect(inputsOf(translated, shopTools)).toEqual([{ text: 'Hello', language: 'French' }]);
    const lit = fetched('Fetch https://example.com, then set the kitchen lights to it', 'Level 40');
    expect(inputsOf(lit, shopTools)).toEqual([{ room: 'kitchen', level: 40 }]);
  });

  it('may use the last result of the turn before', () => {
    const before = [user('6 * 7'), ...used(computed('6 * 7', '42')), assistant('6 * 7 = 42.')];
    expect(inputsOf([...before, user('What is that * 2?')])).toEqual([{ expression: '42 * 2' }]);
    expect(answerOf(requestOf('What is that * 2?'))).toContain('needs a result that I do not have');
  });

  it('that follows `then` waits for its turn, also without a reference', () => {
    const question = user('Read a.md, then read b.md');
    expect(inputsOf([question])).toEqual([{ path: 'a.md' }]);
    const read = used({ name: 'read_file', input: { path: 'a.md' }, error: 'Not found' });
    expect(inputsOf([question, ...read])).toEqual([{ path: 'b.md' }]);
  });
});

describe('a required parameter that is missing', () => {
  const asked = [user('Send an email'), assistant('…')];

  it('is asked for, one by one, and taken from the next message', () => {
    const request = (messages: readonly Message[]) => requestOf(messages, { tools: shopTools });
    expect(answerOf(request(asked.slice(0, 1)))).toBe(
      'send_email needs the to. Which one do you mean?',
    );
    const second = [...asked, user('ada@example.com')];
    expect(answerOf(request(second))).toBe(
      'send_email needs the body (What to say). Which one do you mean?',
    );
    const third = [...second, assistant('…'), user('Lunch is ready')];
    expect(inputsOf(third, shopTools)).toEqual([{ to: 'ada@example.com', body: 'Lunch is ready' }]);
  });

  it('is asked for with the values that it may have', () => {
    const answer = answerOf(requestOf('Switch the lights to 40', { tools: shopTools }));
    expect(answer).toBe(
      'set_lights needs the room. Which one do you mean? For example: kitchen, living room.',
    );
  });

  it('is a path only if its examples are', () => {
    const note = declare('read_note', 'Reads a note.', {
      path: { type: 'string', examples: ['Shopping list'] },
    });
    const messages = [user('Read a note'), assistant('…'), user('Groceries')];
    expect(inputsOf(messages, [note])).toEqual([{ path: 'Groceries' }]);
  });

  it('is not asked for again if the next message does not have it', () => {
    const answered = [user('Read the file'), assistant('…'), user('the shopping list')];
    expect(answerOf(requestOf(answered))).toBe(
      'I left out “Read the file, the shopping list”, because I find no path in it. ' +
        'For example: README.md, src/index.ts.',
    );
    const again = [...answered, assistant('…'), user('Read the file')];
    expect(answerOf(requestOf(again))).toMatch(/^read_file needs the path\./u);
    expect(inputsOf([...again, assistant('…'), user('a.md')])).toEqual([{ path: 'a.md' }]);
  });

  it('holds up no other part', () => {
    const question = user('Read the file, and what is 6 * 7?');
    expect(inputsOf([question])).toEqual([{ expression: '6 * 7' }]);
    const answer = answerOf(requestOf([question, ...used(computed('6 * 7', '42'))]));
    expect(answer).toMatch(/^read_file needs the path\. .* 6 \* 7 = 42\.$/u);
  });

  it('is not taken from a message that asks for something else', () => {
    expect(inputsOf([user('Read the file'), assistant('…'), user('What is 6 * 7?')])).toEqual([
      { expression: '6 * 7' },
    ]);
  });
});

describe('a call that was edited on its way', () => {
  it('is answered by what came back in its place', () => {
    const edited = used(computed('2 + 2', '4'), {
      name: 'clock',
      input: { place: 'Rome' },
      output: '12:00',
    });
    const messages = [user('What is 1 + 1? And what time is it in Rome?'), ...edited];
    expect(answerOf(requestOf(messages))).toBe('1 + 1 = 4. Rome: 12:00.');
  });

  it('is not repeated for ever if another tool answered', () => {
    const other = () => used({ name: 'other', input: {}, output: 'else' });
    const messages = [user('What is 1 + 1?'), ...Array.from({ length: 5 }, other).flat()];
    expect(inputsOf(messages)).toEqual([]);
  });
});

describe('a search', () => {
  const found = (question: string, query: string, output: string): string =>
    answerOf(
      requestOf([user(question), ...used({ name: 'search_docs', input: { query }, output })]),
    );

  it('is answered with the passage that fits best, and its source', () => {
    const output =
      'Found in 2 files:\n\n1. docs/a.md:3 › Flow (relevance 90 %)\nThe loop turns.\n\n' +
      '2. docs/b.md › Other (relevance 80 %)\nSee below.\n\n- **Backpressure** is a level gate.';
    expect(found('How does backpressure gate?', 'backpressure gate', output)).toBe(
      '“Backpressure is a level gate.” (docs/b.md › Other)',
    );
  });

  it('prefers prose to code and tables', () => {
    const output = 'a.md\ngate({ slow: true }); x = gate;\n\nThe gate is closed.';
    expect(found('What is the gate?', 'gate', output)).toContain('“The gate is closed.” (a.md)');
  });

  it('may return JSON', () => {
    const output = JSON.stringify({ hits: [{ path: 'a.md', text: 'Backpressure is a gate.' }] });
    expect(found('How does backpressure work?', 'backpressure', output)).toBe(
      '“Backpressure is a gate.” (a.md)',
    );
  });

  it('says if the passages have too few of the words', () => {
    const output = 'docs/hello.md\nThe world turns.';
    expect(found('who won the 1998 world cup?', 'won 1998 world cup', output)).toBe(
      'The documents do not seem to answer “who won the 1998 world cup”.',
    );
    expect(found('who won the world cup?', 'won world cup', output)).toBe(
      'The nearest passage, which may not answer it: “The world turns.” (docs/hello.md)',
    );
    expect(found('who won?', 'won', 'Nothing matches.')).toMatch(/do not seem to answer/u);
  });
});
