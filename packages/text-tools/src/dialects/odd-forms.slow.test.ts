import type { ModelChunk } from 'millrace';
import { describe, expect, it } from '@jest/globals';
import type { DialectName } from './corpus/sample.test-support.js';
import { corpusTools } from './corpus/sample.test-support.js';
import { createReader } from './reader.js';
import { dialects, replied, request, textIn } from './reading.test-support.js';

const names: readonly DialectName[] = ['action', 'flat', 'lines', 'steps'];
const cuts = (reply: string): readonly (readonly string[])[] => [
  [reply],
  reply.split(''),
  reply.match(/[^]{1,7}/g) ?? [],
];
const outcome = async (dialect: DialectName, pieces: readonly string[]) => {
  const { chunks } = await replied(dialects[dialect], pieces);
  const kept = chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1);
  return {
    ran: kept.flatMap((chunk) => (chunk.type === 'toolCall' ? [[chunk.name, chunk.input]] : [])),
    said: textIn(kept, 'text'),
    isAsked: kept.some(({ type }) => type === 'malformed'),
  };
};
const call = '{"tool": "search", "inputs": {"q": "cats"}}';

/** One call of `search`, as models write it. */
const odd: Readonly<Record<string, string>> = {
  'a comment of Python': '{"tool": "search", # don\'t {\n "inputs": {"q": "cats"}}',
  'a comment of JavaScript': '{"tool": "search", // don\'t {\n "inputs": {"q": "cats"}}',
  'brackets in a comment of Python': '{"tool": "search", # a }\n "inputs": {"q": "cats"}}',
  'brackets in a comment of JavaScript': '{"tool": "search", // a }\n "inputs": {"q": "cats"}}',
  'a key in two spellings': '{"tool": "search", "Tool": "now", "inputs": {"q": "cats"}}',
  'the list of an API beside its call':
    '{"tool": "search", "inputs": {"q": "cats"}, "tool_calls": [{"name": "now", "arguments": {}}]}',
  'trailing commas': '{"tool": "search", "inputs": {"q": "cats",},}',
  'Python literals': "{'tool': 'search', 'final_answer': None, 'inputs': {'q': 'cats'}}",
  'smart quotes': '{“tool”: “search”, “inputs”: {“q”: “cats”}}',
  'arguments as a string': '{"tool": "search", "inputs": "{\\"q\\": \\"cats\\"}"}',
  'keys in another case': '{"Tool": "search", "Inputs": {"q": "cats"}}',
  'keys in camel case': '{"toolName": "search", "toolInput": {"q": "cats"}}',
  'keys with spaces': '{"Action": "search", "Action Input": {"q": "cats"}}',
  'keys in capitals': '{"TOOL": "search", "ARGUMENTS": {"q": "cats"}}',
  'the name in another case': '{"tool": "Search", "inputs": {"q": "cats"}}',
  'a name with brackets': '{"tool": "search()", "inputs": {"q": "cats"}}',
  'a name in a namespace': '{"tool": "functions.search", "inputs": {"q": "cats"}}',
  'a list of an API': '{"tool_calls": [{"name": "search", "arguments": {"q": "cats"}}]}',
  'a message of an API':
    '{"content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "search", "arguments": "{\\"q\\": \\"cats\\"}"}}]}',
  'an old message of an API':
    '{"function_call": {"name": "search", "arguments": "{\\"q\\": \\"cats\\"}"}}',
};

describe.each(names)('P3: odd spellings in the dialect %s', (dialect) => {
  it.each(['`', '` ', '```json\n', ''])(
    'P3: an action after %j, as an object or a list',
    async (mark) => {
      for (const json of [call, `[${call}]`, `[ ${call}]`]) {
        const reply = `Action: ${mark}${json}${mark.trim().replace('json', '')}`;
        for (const pieces of cuts(reply)) {
          const { ran, isAsked } = await outcome(dialect, pieces);
          expect({ reply, ran, isAsked }).toEqual({
            reply,
            ran: [['search', { q: 'cats' }]],
            isAsked: false,
          });
        }
      }
    },
  );

  it.each(
    Object.entries(odd).flatMap(([kind, json]) => [
      [kind, `Thought: I look.\nAction: ${json}`] as const,
      [`${kind}, in a fence`, `Action: \`\`\`json\n${json}\n\`\`\``] as const,
    ]),
  )('P3: %s', async (_, reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [['search', { q: 'cats' }]],
        said: '',
        isAsked: false,
      });
    }
  });

  it.each(['Action: ', ''])(
    'P3: the thought beside a list of an API, after "%s"',
    async (label) => {
      const { chunks } = await replied(dialects[dialect], [
        `${label}{"thought": "I look.", "tool_calls": [{"name": "search", "arguments": {"q": "cats"}}]}`,
      ]);
      expect(textIn(chunks, 'thinking')).toBe('I look.');
    },
  );

  it('P3: a name in another case that two tools have fits neither', async () => {
    const tools = corpusTools.flatMap((tool) => [tool, { ...tool, name: tool.name.toUpperCase() }]);
    for (const name of ['search', 'SEARCH', 'Search']) {
      const reply = `Action: ${call.replace('search', name)}`;
      const { chunks } = await replied(dialects[dialect], [reply], {
        asked: { ...request, tools },
      });
      const [toolCall] = chunks.filter(({ type }) => type === 'toolCall');
      expect(toolCall).toMatchObject({ name });
    }
  });

  it.each([
    `- Thought: I look.\n- Action: ${call}`,
    '1. Thought: I look.\n2. Action: search\n3. Action Input: {"q": "cats"}',
    '* **Thought:** I look.\n  * **Action:** search\n  * **Action Input:** {"q": "cats"}',
    `\u200BAction: ${call}`,
    `\uFEFF\u200B\n${call}`,
    `Action\u200B: \u200B${call}`,
    `Thought: I look.\r\nAction: ${call}\r\n`,
    `Thought: I look.\n\u2060**Action**\u200B:\u200B${call}`,
  ])('P3: lists and characters without a width: %j', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [['search', { q: 'cats' }]],
        said: '',
        isAsked: false,
      });
    }
  });

  it.each([
    '- Buy milk.\n- Action: call your bank.',
    '1. One\n2. Thought: free\n',
    '- A thought: it is late.',
    '\u200Bsearch is a word',
    'A\u200Bb \u200B c\u200D',
    '- **Bold:** one\n- *two*',
    '{"Name": "Ada", "Type": "person"}',
    '{"name": "Ada", "tool_calls": 3}',
    '{"Final Draft": "yes"}',
    'See {"tool_calls": []} there.',
  ])('P3: %j stays as it is', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [],
        said: reply.trim().replace(/^\u200B/, ''),
        isAsked: false,
      });
    }
  });

  it.each([
    '{"final_answer": false}',
    '{"final_answer": None}',
    '{"tool": null, "final_answer": false}',
    '{"tool": null, "inputs": {}, "final_answer": null}',
    '{"thought": "hm", "tool": null, "final_answer": []}',
  ])('P12: the flags %s do not reach the user', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({ ran: [], said: '', isAsked: true });
    }
  });

  it.each([
    `Either\n${call}\nor\n${call.replace('cats', 'dogs')}`,
    `It wrote\n\n${call}\n\nand then\n\n${call}\n\nand then\n\n${call}`,
  ])('P9: after an example of a call, the last one does not run either: %j', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toMatchObject({ ran: [], isAsked: true });
    }
  });
});

describe.each(names)('P2: thoughts around an answer in the dialect %s', (dialect) => {
  const long = 'The mill grinds slowly, and it grinds fine. '.repeat(20).trim();
  it.each([
    ['It is 4.\n<think>I am sure.</think>', 'It is 4.'],
    ['It is 4.\n<think>Really?</think>\nYes, it is 4.', 'It is 4.\n\nYes, it is 4.'],
    [
      '<think>a</think>\nIt is 4.\n\n<think>b</think>\n\nYes.\n<think>c</think>',
      'It is 4.\n\nYes.',
    ],
    [`${long}\n<think>Really?</think>\nYes.`, `${long}\n\nYes.`],
    ['<think>a</think>\n\n\nIt is 4.', 'It is 4.'],
  ])('P2: %j', async (reply, said) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({ ran: [], said, isAsked: false });
    }
  });

  it('P2: text before a thought and an action is a thought', async () => {
    const { chunks } = await replied(dialects[dialect], [
      `I look.\n<think>hm</think>\n<tool_call>{"name": "search", "arguments": {"q": "cats"}}</tool_call>`,
    ]);
    expect(textIn(chunks, 'text')).toBe('');
    expect(textIn(chunks, 'thinking')).toContain('I look.');
  });
});

/** Characters that are written before something of the answer shows. */
const longestHold = (dialect: DialectName, reply: string): number => {
  let [written, seen, longest] = [0, 0, 0];
  const reader = createReader({
    dialect: dialects[dialect],
    tools: corpusTools,
    mayAct: true,
    mayRetract: () => true,
    emit: (chunk) => {
      if (chunk.type === 'text') seen += chunk.text.length;
    },
  });
  for (const character of reply) {
    written += 1;
    reader.push(character);
    longest = Math.max(longest, written - seen);
  }
  return longest;
};

describe.each(names)('P10: JSON in an answer in the dialect %s', (dialect) => {
  const long = JSON.stringify('The mill grinds slowly, and it grinds fine. '.repeat(60));
  const data: Readonly<Record<string, string>> = {
    'with a name first': `{"name": "Ada", "bio": ${long}}`,
    'with an unknown tool': `{"tool": "hammer", "note": ${long}}`,
    'with an input first': `{"input": ${long}, "x": 1}`,
    'with a type first': `{"type": "person", "id": 7, "bio": ${long}}`,
    'in a list': `[{"name": "Ada", "bio": ${long}}, {"name": "Bob"}]`,
  };

  it.each(
    Object.entries(data).flatMap(([kind, json]) => [
      [kind, `Here it is:\n${json}\nThat is all.`] as const,
      [`${kind}, in a fence`, `Here it is:\n\`\`\`json\n${json}\n\`\`\`\nThat is all.`] as const,
    ]),
  )('P10: %s', async (_, reply) => {
    expect(longestHold(dialect, reply)).toBeLessThan(1_024 + 256);
    for (const pieces of cuts(reply)) {
      const { chunks } = await replied(dialects[dialect], pieces);
      expect(textIn(chunks, 'text')).toBe(reply);
      expect(chunks.some(({ type }) => type === 'restart')).toBe(false);
    }
  });

  it.each([['with its arguments first', `{"inputs": {"q": ${long}}, "tool": "search"}`]])(
    'P10: a call that looks like data is taken back: %s',
    async (_, json) => {
      const reply = `I look.\n${json}`;
      const joined = await Promise.all(
        cuts(reply).map(async (pieces) => (await replied(dialects[dialect], pieces)).joined),
      );
      expect(joined[1]).toEqual(joined[0]);
      expect(joined[2]).toEqual(joined[0]);
      const { ran, said } = await outcome(dialect, [reply]);
      expect({ ran: ran.length, said }).toEqual({ ran: 1, said: '' });
      const chunks = joined[0] ?? [];
      const kept = chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1);
      expect(textIn(kept, 'thinking')).toBe('I look.');
    },
  );

  it('P10: a long call that names a tool first is not shown', async () => {
    const reply = `I look.\n{"tool": "search", "inputs": {"q": ${long}}}`;
    for (const pieces of cuts(reply)) {
      const { chunks } = await replied(dialects[dialect], pieces);
      expect(textIn(chunks, 'text')).not.toContain('{');
      expect(chunks.some(({ type }) => type === 'toolCall')).toBe(true);
    }
  });

  it('P10: JSON that may be a call is held up to 1,024 characters', async () => {
    const words = 'The mill grinds slowly, and it grinds fine. '.repeat(20);
    const reply = `I look.\n{"inputs": {"q": "${words}"}, "tool": "search"}`;
    for (const pieces of cuts(reply)) {
      const { chunks } = await replied(dialects[dialect], pieces);
      expect(chunks.some(({ type }) => type === 'restart')).toBe(false);
      expect(textIn(chunks, 'text')).toBe('');
    }
  });

  it('P10: JSON that may be a call is not shown if text cannot be taken back', () => {
    const shown: string[] = [];
    const reader = createReader({
      dialect: dialects[dialect],
      tools: corpusTools,
      mayAct: true,
      mayRetract: () => false,
      emit: (chunk) => {
        if (chunk.type === 'text') shown.push(chunk.text);
      },
    });
    for (const piece of `I look.\n{"inputs": {"q": ${long}}, "tool": "search"}`) reader.push(piece);
    reader.end();
    expect(shown.join('')).not.toContain('{');
  });

  it('P10: an answer with further labels of answers streams', async () => {
    const part = 'The mill grinds slowly, and it grinds fine. '.repeat(10).trim();
    const reply = `Final Answer: One.\n\nFinal Answer: two.\n${part}`;
    expect(longestHold(dialect, reply)).toBeLessThan(120);
    for (const pieces of cuts(reply)) {
      expect((await outcome(dialect, pieces)).said).toBe(reply.replace('Final Answer: ', ''));
    }
  });

  it('P10: a further label ends what may repeat the answer', () => {
    const part = 'The mill grinds slowly, and it grinds fine. '.repeat(10).trim();
    const reply = `Final Answer: ${part}\n${part}\nFinal Answer: ${part}\nFinal Answer: ${part}`;
    expect(longestHold(dialect, reply)).toBeLessThan(part.length + 80);
  });

  it.each([
    ['Final Answer: 4\nFinal Answer: 4\nFinal Answer: 4', '4'],
    ['Final Answer: 4\n\nFinal Answer:  4\n\nFinal Answer: 4\nFinal Answer: 4\n', '4'],
    ['Final Answer: Final Answer: 4', '4'],
    ['Final Answer:\nFinal Answer: 4\nFinal Answer: 4', '4'],
    ['Action: {"final_answer": "4"}\nFinal Answer: 4\nFinal Answer: 4', '4'],
    ['Final Answer: a\nFinal Answer: a\nFinal Answer: b', 'a\nFinal Answer: a\nFinal Answer: b'],
    [
      'Final Answer: a\nb\nFinal Answer: a\nFinal Answer: b',
      'a\nb\nFinal Answer: a\nFinal Answer: b',
    ],
    [
      'Final Answer: a\nb\nFinal Answer: a\nFinal Answer:b\nFinal Answer: a\nb',
      'a\nb\nFinal Answer: a\nFinal Answer:b\nFinal Answer: a\nb',
    ],
  ])('P10: %j says %j', async (reply, said) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({ ran: [], said, isAsked: false });
    }
  });

  const words = 'The mill grinds slowly, and it grinds fine. '.repeat(20).trim();
  const shapes: Readonly<Record<string, readonly [json: string, said: string]>> = {
    'in single quotes': [`{'final_answer': '${words}'}`, words],
    'in single quotes, with escapes': [
      `{'final_answer': 'It\\'s \\u00e9.\\n${words}'}`,
      `It's é.\n${words}`,
    ],
    'in smart quotes': [`{“final_answer”: “${words}”}`, words],
    'in single smart quotes': [`{‘final_answer’: ‘"a" ${words}’}`, `"a" ${words}`],
    'in a list': [`{"final_answer": ["${words}"]}`, words],
    'in a list of several': [
      `{"final_answer": ["", "yes", '${words}', "no"]}`,
      `yes\n${words}\nno`,
    ],
    'in a list of blocks': [
      `{"final_answer": [{"type": "text", "text": "${words}"}, {"type": "text", "text": "b"}]}`,
      `${words}\nb`,
    ],
    'in a list of both': [
      `{"final_answer": ["${words}", {"type": "text", "text": "b"}]}`,
      `${words}\nb`,
    ],
    'in an object': [`{"final_answer": {"text": "${words}"}}`, words],
    'in an object with a type': [`{"final_answer": {"type": "text", "text": "${words}"}}`, words],
    'in objects': [`{"final_answer": {"message": {"content": ["${words}"]}}}`, words],
    'as the input of the final answer': [
      `{"tool": "final_answer", "inputs": {"answer": {"text": "${words}"}}}`,
      words,
    ],
    'as a list for an input': [
      `{"action": "Final Answer", "action_input": ["${words}", "b"]}`,
      `${words}\nb`,
    ],
  };
  it.each(Object.entries(shapes))('P10: an answer %s streams', async (_, [json, said]) => {
    const reply = `Action: ${json}`;
    expect(longestHold(dialect, reply)).toBeLessThan(150);
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({ ran: [], said, isAsked: false });
      const { chunks } = await replied(dialects[dialect], pieces);
      expect(chunks.some(({ type }) => type === 'restart')).toBe(false);
    }
  });

  it('P10: an answer in an object is shown at its end if text cannot be taken back', () => {
    const chunks: ModelChunk[] = [];
    const reader = createReader({
      dialect: dialects[dialect],
      tools: corpusTools,
      mayAct: true,
      mayRetract: () => false,
      emit: (chunk) => chunks.push(chunk),
    });
    for (const piece of `Action: {"final_answer": {"text": "${words}", "n": 2}`) reader.push(piece);
    expect(chunks).toEqual([]);
    reader.push('}');
    reader.end();
    expect(textIn(chunks, 'text')).toBe(`{"text":"${words}","n":2}`);
  });

  it.each([
    ['{"final_answer": "It is ', 'It is '],
    ['{"final_answer": ["It is", "noon in', 'It is\nnoon in'],
    ['{"final_answer": {"text": "It is noon in', 'It is noon in'],
    ['{"tool": "final_answer", "inputs": {"answer": {"text": ["It is', 'It is'],
  ])('P10: %j, which is cut off, says %j', async (json, said) => {
    for (const pieces of cuts(`Action: ${json}`)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [],
        said: said.trim(),
        isAsked: false,
      });
    }
  });

  const otherwise: Readonly<Record<string, string>> = {
    'an object with a second key': `{"text":"${words}","n":2}`,
    'a block with a second key': `[{"type":"text","text":"${words}","n":2},{"x":1}]`,
    'a list with a number': `["${words}",2]`,
    'a list of other blocks': `[{"type":"note","text":"${words}"}]`,
    'a list of lists': `["${words}",["b"]]`,
  };
  it.each(Object.entries(otherwise))(
    'P10: an answer that turns out to be %s is taken back',
    async (_, json) => {
      const replies = [
        `Action: {"thought": "I see.", "final_answer": ${json}}`,
        `Action: {"final_answer": ${json}, "thought": "I see."}`,
      ];
      for (const pieces of replies.flatMap(cuts)) {
        const { chunks } = await replied(dialects[dialect], pieces);
        expect(await outcome(dialect, pieces)).toEqual({ ran: [], said: json, isAsked: false });
        const kept = chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1);
        expect(textIn(kept, 'thinking')).toContain('I see.');
        expect(chunks.filter(({ type }) => type === 'restart').length).toBeLessThanOrEqual(1);
      }
    },
  );

  it('P10: an answer as the input of the final answer streams', () => {
    const reply = `Action: {"action": "Final Answer", "action_input": ${long}}`;
    expect(longestHold(dialect, reply)).toBeLessThan(120);
  });
});

describe('P12: answers that are numbers or empty', () => {
  it.each([
    ['Action: {"final_answer": 1e400}', 'Infinity'],
    ['Action: {"final_answer": -1.50}', '-1.5'],
    ['Action: {"final_answer": 12345678901234567890}', '12345678901234567890'],
  ])('P12: %s', async (reply, said) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome('action', pieces)).toEqual({ ran: [], said, isAsked: false });
    }
  });

  it.each(['null', '{}', '[]', '""'])('P12: completed with %s is no text', async (answer) => {
    const reply = `[{"name": "complete_task", "arguments": {"answer": ${answer}}}]`;
    expect((await outcome('steps', [reply])).said).toBe('');
  });
});
