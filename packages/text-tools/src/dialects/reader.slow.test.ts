import {
  createAgent,
  type JsonSchema,
  type Model,
  type ModelChunk,
  type ModelRequest,
  textOf,
  tool,
} from 'millrace';
import { finish, lentContext, text, thinking, toolCall } from 'millrace/testing';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom, of, toArray } from 'rxjs';
import { corpus } from './corpus/index.test-support.js';
import { corpusTools } from './corpus/sample.test-support.js';
import { actionDialect, type Dialect } from './dialects.js';
import { createReader } from './reader.js';
import { dialects, joinDeltas, replied, request, textIn } from './reading.test-support.js';
import { textTools } from './text-tools.js';

const all = Object.values(dialects);
const { action, flat, steps, lines } = dialects;
const now = tool({ name: 'now', description: 'Tells the time.', run: () => 'noon' });
const long = 'I have thought about this for quite a while, and it is not easy. '.repeat(6).trim();

/** What shows while a reply arrives, and before it is over. */
const shown = (dialect: Dialect, pieces: readonly string[]): readonly ModelChunk[] => {
  const chunks: ModelChunk[] = [];
  const reader = createReader({
    dialect,
    tools: corpusTools,
    emit: (chunk) => chunks.push(chunk),
    mayAct: true,
    mayRetract: () => true,
  });
  pieces.forEach(reader.push);
  return joinDeltas(chunks);
};

/** What stays of a reply that takes a part of it back. */
const shownIn = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  joinDeltas(chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1)).filter(
    ({ type }) => type === 'text' || type === 'thinking',
  );

const texts: readonly string[] = [
  ...corpus.map((sample) => sample.text),
  long,
  `${long}\nAction: {"tool": "now", "inputs": {}}`,
  `${long}\n[{"name": "now", "arguments": {}}]`,
  `${long}</think>\nFinal Answer: 42`,
  `Thought: ${long}\n\n  Final   Answer: x\nFinal Answer: 😀 ${long}  \n\n `,
  'a\n```js\nObservation: {"tool": "now"}\n```\nb',
  '```\n\n```\n```json\n',
  'Final Answer: a\n<tool_call>{"name": "now"}</tool_call>',
  'Final Answer: a\n<tool_call>{"name": "fly"}</tool_call>b',
  '{"answer": "\\ud83d\\ude00 \\u0041 \\n\\t"}',
  'Action: now\nAction Inp',
  'a\n```{"tool": "now", "inputs": {}, "arguments": {}}',
  'a\n```json {"tool": "now", "arguments": {}}\n```',
  'a\n{"tool": "now", "arguments": {}} `{"tool": "now", "arguments": {}}',
  'Action: {"tool": "now"}\n``',
  'a <thin b <think> c\n<think>d</thi e</think>f',
  '[TOOL_CA [TOOL_CALLS] [{"name": "now"}]',
];

describe('P2: any cuts give the same', () => {
  it.each(Object.keys(dialects))(
    'P2: character by character in %s',
    async (name) => {
      const dialect = dialects[name as keyof typeof dialects];
      for (const it of texts) {
        const whole = await replied(dialect, [it]);
        const cut = await replied(dialect, it.split(''));
        expect({ text: it, joined: cut.joined }).toEqual({ text: it, joined: whole.joined });
        expect(cut.reports).toEqual(whole.reports);
      }
    },
    60_000,
  );

  it.each(Object.keys(dialects))(
    'P2: at any position in %s',
    async (name) => {
      const dialect = dialects[name as keyof typeof dialects];
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.constantFrom(...texts), { minLength: 1, maxLength: 3 }),
          fc.constantFrom('', '\n', ' '),
          fc.array(fc.nat(), { maxLength: 12 }),
          async (parts, glue, cuts) => {
            const it = parts.join(glue);
            const at = [0, ...cuts.map((cut) => cut % (it.length + 1)), it.length].sort(
              (a, b) => a - b,
            );
            const pieces = at.slice(1).map((end, index) => it.slice(at[index], end));
            const [whole, cut] = [await replied(dialect, [it]), await replied(dialect, pieces)];
            expect(cut.joined).toEqual(whole.joined);
            expect(cut.reports).toEqual(whole.reports);
          },
        ),
        { numRuns: 300 },
      );
    },
    60_000,
  );

  it('P2: of random marks', async () => {
    const marks = fc.constantFrom(
      'Thought:',
      'Action:',
      'Action Input:',
      'Final Answer:',
      'Observation:',
      '\n',
      ' ',
      'a',
      '**',
      '#',
      '```',
      '```json\n',
      '<think>',
      '</think>',
      '<tool_call>',
      '</tool_call>',
      '[TOOL_CALLS]',
      '[CALL_ID]',
      'x'.repeat(150),
      'Final Answer: ',
      '~~~\n',
      '\r\n',
      '[ARGS]',
      '<function=now>',
      '</function>',
      '<parameter=q>',
      '</parameter>',
      '<|python_tag|>',
      'now',
      'search',
      '{"tool": "now"}',
      '{"name": "search", "arguments": {"q": "x"}}',
      '{',
      '}',
      '[',
      ']',
      '"',
      "'",
      ':',
      ',',
      '{"answer": "b"}',
      '{"thought": "c"',
      '"tool"',
      '\\',
      '\\u00',
      '(',
      ')',
      'None',
      '😀',
      '[{"name": "now"}]',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(marks, { maxLength: 14 }),
        fc.constantFrom(...all),
        async (parts, dialect) => {
          const it = parts.join('');
          const whole = await replied(dialect, [it]);
          const cut = await replied(dialect, it.split(''));
          expect(cut.joined).toEqual(whole.joined);
        },
      ),
      {
        numRuns: 3_000,
        examples: [
          [
            [
              'Thought:',
              '<|python_tag|>',
              '{"name": "search", "arguments": {"q": "x"}}',
              '```',
              '{',
              'Thought:',
            ],
            action,
          ],
        ],
      },
    );
  }, 180_000);
});

describe('P2: what shows while it arrives', () => {
  it('P2: a thought as thinking, without its label', () => {
    for (const pieces of [
      ['Tho', 'ught: I lo', 'ok'],
      ['**Thought:** I look'],
      ['## Thought: I look'],
    ]) {
      expect(shown(action, pieces)).toEqual([thinking('I look')]);
    }
  });

  it('P2: the answer after its label', () => {
    expect(shown(lines, ['Thought: a\nFinal An', 'swer: The su', 'm is'])).toEqual([
      thinking('a'),
      text('The sum is'),
    ]);
  });

  it('P2: the answer within JSON, decoded', () => {
    expect(shown(flat, ['{"scratchpad": "I kn', 'ow", "answer": "a\\n\\u00', 'e9 b'])).toEqual([
      thinking('I know'),
      text('a\né b'),
    ]);
    expect(shown(action, ['Action: {"final_answer": "yes, ', 'it'])).toEqual([text('yes, it')]);
    expect(
      shown(steps, ['So:\n[{"name": "complete_task", "arguments": {"answer": "it is ', 'no']),
    ).toEqual([thinking('So:'), text('it is no')]);
  });

  it('P2: half a pair of an emoji is held back', () => {
    expect(shown(flat, ['{"answer": "a \\ud83d'])).toEqual([text('a')]);
    expect(shown(flat, ['{"answer": "a \\ud83d\\ude00'])).toEqual([text('a 😀')]);
  });

  it('P2: prose from the 256th character on', () => {
    for (const dialect of all) {
      expect(shown(dialect, [long.slice(0, 255)])).toEqual([]);
      expect(shown(dialect, [long.slice(0, 256)])).toEqual([text(long.slice(0, 256).trimEnd())]);
    }
  });

  it('P2: prose that an action follows is a thought', async () => {
    const { joined } = await replied(action, ['I look.\n\nAction: {"tool": "now"}']);
    expect(joined).toEqual([thinking('I look.'), toolCall('now'), finish()]);
  });

  it('P2: prose after an action is a thought', async () => {
    const { joined } = await replied(flat, ['{"tool": "now"}\nI wait.']);
    expect(joined).toEqual([thinking('I wait.'), toolCall('now'), finish()]);
  });

  it('P2: long prose before a list is a thought, and alone the answer', async () => {
    const list = '[{"name": "now", "arguments": {}}]';
    const { chunks } = await replied(steps, [`${long}\n${list}`]);
    expect(shownIn(chunks)).toEqual([thinking(long)]);
    expect(chunks.slice(-2)).toEqual([toolCall('now'), finish()]);
    expect((await replied(steps, [long])).joined).toEqual([text(long), finish()]);
  });

  it('P2: a thought that only ends is not said twice', async () => {
    const { chunks } = await replied(steps, [`${long}\n</think>\nIt is 4.`]);
    expect(shownIn(chunks)).toEqual([thinking(long), text('It is 4.')]);
  });

  it('P2: no marker leaks from well-formed replies', async () => {
    const marked = [
      'Thought: a',
      'Action: ',
      'Final Answer',
      'Observation',
      '</',
      '<t',
      '```',
      '[T',
      '{"',
    ];
    for (const sample of corpus.filter(({ expected }) => 'uses' in expected)) {
      const { chunks } = await replied(dialects[sample.dialect], sample.text.split(''));
      const said = textIn(chunks, 'text') + textIn(chunks, 'thinking');
      const allowed = ['the Action: part'];
      const rest = allowed.reduce((it, words) => it.replaceAll(words, ''), said);
      const leaks = sample.name.startsWith('think tags')
        ? []
        : marked.filter((it) => rest.includes(it));
      expect({ name: sample.name, leaks }).toEqual({ name: sample.name, leaks: [] });
    }
  });
});

describe('the judgement', () => {
  it('P6: further actions are refused, and one dialect runs all', async () => {
    const two = '{"name": "now"}\n{"name": "search", "arguments": {"q": "x"}}';
    const [first, second] = (await replied(flat, [two])).chunks;
    expect(first).toEqual(toolCall('now'));
    expect(second).toMatchObject({
      name: 'search',
      refusal: expect.stringMatching(/one action per step/),
    });
    const listed = (await replied(steps, [two])).chunks;
    expect(listed.slice(0, 2)).toEqual([toolCall('now'), toolCall('search', { q: 'x' })]);
  });

  it('P4: feedback speaks for itself', async () => {
    const written = 'Action: {"tool": "search", "inputs": {"q": "ca';
    const { chunks } = await replied(action, [written]);
    const malformed = chunks.find((chunk) => chunk.type === 'malformed');
    expect(malformed).toMatchObject({ written });
    expect(malformed?.feedback).toContain('incomplete');
    expect(malformed?.feedback).toContain('"required":["q"]');
    expect(malformed?.feedback).toContain('{"final_answer": "your answer"}');
    expect(malformed?.feedback).toContain(written);
    expect(textIn(chunks, 'text')).toBe('');
  });

  it('I15: feedback cuts what was written visibly', async () => {
    const { chunks } = await replied(action, [
      `Action: {"tool": "search", "inputs": {"q": "${'x'.repeat(9_000)}`,
    ]);
    const malformed = chunks.find((chunk) => chunk.type === 'malformed');
    expect(malformed?.feedback).toMatch(/\[… 7\d{3} characters omitted …\]/);
    expect(malformed?.feedback.length).toBeLessThan(3_000);
  });

  it('P4: words in the place of an action are also text', async () => {
    const { chunks } = await replied(action, ['Action: ask somebody']);
    expect(textIn(chunks, 'text')).toBe('ask somebody');
    const plan = 'My plan:\nAction: buy milk\nThen rest.';
    expect(shownIn((await replied(action, [plan])).chunks)).toEqual([text(plan)]);
    expect(chunks.some(({ type }) => type === 'malformed')).toBe(true);
  });

  it('P4: prose with headings is not cut', async () => {
    const plan = 'Best:\n\nAction: call your bank.\n\nObservation: it closes at 5.\n\nRegards';
    for (const dialect of all) {
      const { chunks, reports } = await replied(dialect, [plan]);
      expect(shownIn(chunks)).toEqual([text(plan)]);
      expect(reports).toEqual([]);
    }
  });

  it('P4: prose is a fault if the dialect is strict, or a tool is forced', async () => {
    const types = async (dialect: Dialect, asked = request) =>
      (await replied(dialect, ['Hello.'], { asked })).chunks.map(({ type }) => type);
    const fault = ['text', 'malformed', 'finish'];
    expect(await types(action)).toEqual(['text', 'finish']);
    expect(await types(actionDialect({ strict: true }))).toEqual(fault);
    expect(await types(action, { ...request, toolChoice: 'required' })).toEqual(fault);
    expect(
      await types(actionDialect({ strict: true }), { ...request, toolChoice: 'none' }),
    ).toEqual(['text', 'finish']);
  });

  it.each([
    ['an answer', `${long}\nFinal Answer: 42`],
    ['the end of a thought', `${long}\n</think>\n\n42`],
    ['the end of a thought, and an answer', `${long}\n</think>\nFinal Answer: 42`],
  ])('P2: what has streamed as text before %s was a thought', async (_, reply) => {
    const { chunks } = await replied(action, reply.split(''));
    expect(chunks.filter(({ type }) => type === 'restart')).toHaveLength(1);
    expect(shownIn(chunks)).toEqual([thinking(long), text('42')]);
  });

  it('X1: takes back text after usage, which counts once', async () => {
    const model: Model = {
      name: 'm',
      stream$: () =>
        from<readonly ModelChunk[]>([
          { type: 'usage', usage: { inputTokens: 9 } },
          text(`${long}\n`),
          text('Final Answer: 42'),
          { type: 'usage', usage: { inputTokens: 9, outputTokens: 9 } },
          finish(),
        ]),
    };
    const reply = await createAgent({ model: textTools(model, action), tools: [now] }).call('?');
    expect(textOf(reply)).toBe('42');
    expect(reply.usage).toMatchObject({ inputTokens: 9, outputTokens: 9 });
  });

  it.each([
    '**Thought:** look\n**Action:** {"tool": "search", "inputs": {"q": "cats"}}',
    '**Action:** {"tool": "search", "inputs": {"q": "cats"}}',
  ])('P8: an observation after %j is made up, however it arrives', async (reply) => {
    for (const pieces of [[`${reply}\nObservation: many`], [reply, '\nObservation: many']]) {
      const { reports } = await replied(action, pieces);
      expect(reports).toMatchObject([{ type: 'warning' }]);
    }
  });

  it('P8: a turn of another speaker is made up', async () => {
    const { joined, reports } = await replied(lines, ['4<|im_', 'end|>\n<|im_start|>user\nThanks']);
    expect(joined[0]).toEqual(text('4'));
    expect(joined.at(-1)).toEqual(finish());
    expect(reports).toEqual([
      { type: 'warning', message: expect.stringContaining('invent the next turn') },
    ]);
  });

  it('P6: a tool call counts, in any form that the model chooses', async () => {
    const native: ModelChunk = { type: 'toolCall', name: 'now', input: {} };
    const model: Model = { name: 'm', stream$: () => of(native, text('Action: now'), finish()) };
    const chunks = await lastValueFrom(
      textTools(model, lines).stream$(request, lentContext()).pipe(toArray()),
    );
    expect(chunks).toContainEqual({ ...native, refusal: expect.stringContaining('one action') });
  });

  it('L3: if no tool may be used, an answer beside an action counts', async () => {
    const asked: ModelRequest = { ...request, toolChoice: 'none' };
    for (const reply of [
      'Action: now\nAction Input: {}\nFinal Answer: noon',
      'Final Answer: noon\nAction: now\nAction Input: {}',
      'Action: {"tool": "now", "inputs": {}}\nFinal Answer: noon',
    ]) {
      const { chunks } = await replied(action, [reply], { asked });
      expect(textIn(chunks, 'text')).toBe('noon');
      expect(chunks.some(({ type }) => type === 'malformed' || type === 'toolCall')).toBe(false);
    }
  });

  it('R3: takes JSON of the output for the answer, regardless of its keys', async () => {
    const outputSchema = {
      type: 'object',
      properties: { name: { type: 'string' }, action: { type: 'string' } },
    };
    const nested = {
      type: 'object',
      properties: { answer: { type: 'object' } },
      required: ['answer'],
    };
    const read = async (dialect: Dialect, reply: string, schema: JsonSchema = outputSchema) =>
      textIn(
        (await replied(dialect, [reply], { asked: { ...request, outputSchema: schema } })).chunks,
        'text',
      );
    const strict = actionDialect({ strict: true });
    expect(await read(flat, '{"name": "a", "action": "b"}')).toBe('{"name":"a","action":"b"}');
    expect(await read(flat, '{"answer": {"answer": "b"}}', nested)).toBe(
      '{"answer":{"answer":"b"}}',
    );
    expect(await read(strict, '{"result": [1]}', { type: 'object' })).toBe('{"result": [1]}');
    expect(await read(action, 'Thought: done\n{"result": [1]}', { type: 'object' })).toBe(
      '{"result":[1]}',
    );
  });

  it('P7: only a thought continues', async () => {
    const { chunks } = await replied(flat, ['{"scratchpad": "hm"}']);
    expect(chunks).toEqual([
      thinking('hm'),
      {
        type: 'malformed',
        isThought: true,
        why: expect.any(String),
        feedback: expect.stringMatching(/^Continue: /),
      },
      finish(),
    ]);
  });

  it('P8: a made-up observation is cut off, and reported', async () => {
    const { chunks, reports } = await replied(lines, ['Action: now\nObser', 'vation: noon']);
    const usage = { inputTokens: expect.any(Number), outputTokens: 3 };
    expect(chunks).toEqual([toolCall('now'), { type: 'usage', usage }, finish()]);
    expect(reports).toEqual([expect.objectContaining({ type: 'warning' })]);
  });

  it('X2: a reply that was cut short runs nothing', async () => {
    const said = async (dialect: Dialect, it: string) =>
      (await replied(dialect, [it], { end: 'length' })).chunks;
    expect(await said(action, 'Thought: a\nAction: {"tool": "now"}')).toEqual([
      thinking('a'),
      finish('length'),
    ]);
    expect(await said(action, 'Hello')).toEqual([text('Hello'), finish('length')]);
    expect(await said(flat, '{"answer": "The su')).toEqual([text('The su'), finish('length')]);
    expect(await said(action, 'Action: {"tool": "se')).toEqual([finish('length')]);
  });

  it('X11: a repair says before and after', async () => {
    const { reports } = await replied(action, ["Action: {'tool': 'now'}"]);
    expect(reports).toEqual([
      { type: 'repaired', before: "{'tool': 'now'}", after: '{"tool":"now"}' },
    ]);
  });

  it('an empty reply is nothing', async () => {
    expect((await replied(action, [' \n'])).chunks).toEqual([finish()]);
    expect((await replied(action, [])).chunks).toEqual([finish()]);
  });
});
