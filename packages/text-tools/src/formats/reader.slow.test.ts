import { describe, expect, it } from '@jest/globals';
import { createAgent, type Model, type ModelChunk, textOf, tool } from 'millrace';
import {
  finish,
  lentContext,
  marbles,
  modelContract,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from 'millrace/testing';
import fc from 'fast-check';
import { lastValueFrom, of, toArray } from 'rxjs';
import { z } from 'zod';
import { actionDialect, linesDialect, stepsDialect } from '../dialects/index.js';
import { parseToolCalls, splitThinking } from './index.js';
import { outcome, read, sequence } from './reading.test-support.js';
import { corpus, tools } from './samples.test-support.js';

const parsed = (model: Model): Model => parseToolCalls(model);
const split = (model: Model): Model => splitThinking(model);
const replies = Object.values(corpus).flatMap((samples) => samples.map(([, reply]) => reply));

/** Marks and pieces of marks, in any order. */
const pieces = [
  '<think>',
  '</think>',
  '<',
  '</',
  '[THINK]',
  '[/THINK]',
  '◁',
  '◁think▷',
  '`',
  '``',
  '```',
  '```tool_code\n',
  '~~~\n',
  '\n',
  ' ',
  'a',
  '<tool_call>',
  '</tool_call>',
  '<function=now>',
  '</function>',
  '<parameter=city>',
  '</parameter>',
  'weather',
  '<arg_key>city</arg_key>',
  '<arg_value>',
  '</arg_value>',
  '[TOOL_CALLS]',
  '[ARGS]',
  '<|channel|>',
  'analysis',
  'final',
  'commentary',
  ' to=functions.now',
  '<|message|>',
  '<|start|>assistant',
  '<|end|>',
  '<|call|>',
  '<|START_ACTION|>',
  '<|END_ACTION|>',
  '<|START_THINKING|>',
  '<|END_THINKING|>',
  '<|START_RESPONSE|>',
  '<|END_RESPONSE|>',
  '<｜tool▁calls▁begin｜>',
  '<｜tool▁call▁begin｜>',
  '<｜tool▁sep｜>',
  '<｜tool▁call▁end｜>',
  '<|python_start|>',
  '<|python_tag|>',
  'now()',
  'weather(city="a")',
  '[',
  ']',
  '{',
  '}',
  '"',
  "'",
  ',',
  ';',
  '(',
  ')',
  '{"name": "now", "arguments": {}}',
  'Action:',
  'json',
  'function',
  'functions.',
  'default_api.now',
  '.call(',
  '**',
  '- ',
  '> ',
  '“',
  '”',
  '. ',
  '\\',
  '\\"',
  '<|eot_id|>',
  '<function_call id="1">',
  '</function_call>',
  '<tool_use>',
  '</tool_use>',
  '{"name": "run", "arguments": {"code": "</tool_call>"}}',
  '{"name": "Ada"}',
];

const cutAt = (reply: string, cuts: readonly number[]): readonly string[] => {
  const at = [0, ...cuts.map((cut) => cut % (reply.length + 1)), reply.length].sort(
    (a, b) => a - b,
  );
  return at.slice(1).map((end, index) => reply.slice(at[index], end));
};

describe('P2: any cuts give the same', () => {
  const wraps: readonly (readonly [string, (model: Model) => Model])[] = [
    ['parseToolCalls', parsed],
    ['splitThinking', split],
    ['parseToolCalls, opened', (model) => parseToolCalls(model, { opened: true })],
  ];

  it.each(wraps)('P2: character by character in %s', async (_, wrap) => {
    for (const reply of replies) {
      const [whole, cut] = [await read(wrap, [reply]), await read(wrap, reply.split(''))];
      expect({ reply, ...outcome(cut.chunks) }).toEqual({ reply, ...outcome(whole.chunks) });
    }
  });

  it.each(wraps)('P2: of random marks in %s', async (_, wrap) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...pieces), { maxLength: 14 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        async (marks, cuts) => {
          const reply = marks.join('');
          const [whole, cut] = [await read(wrap, [reply]), await read(wrap, cutAt(reply, cuts))];
          expect(sequence(cut.chunks)).toEqual(sequence(whole.chunks));
        },
      ),
      {
        numRuns: 2_000,
        examples: [[['{"name": "now", "arguments": {}}', '{', '</tool_call>'], [35]]],
      },
    );
  });

  it('I9: replies without marks pass through as they are', async () => {
    const words = ['a', ' ', '\n', '<', '>', '[', '`', '```', '{', '"', 'think', 'now', '(', '|'];
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...words), { maxLength: 30 }), async (parts) => {
        const reply = parts.join('');
        fc.pre(!/<think|\[THINK|^\s*\[?\s*now\(/.test(reply));
        const { chunks } = await read(parsed, parts);
        expect(outcome(chunks).text ?? '').toBe(reply);
        expect(chunks.every(({ type }) => type === 'text' || type === 'finish')).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('X2: a call that is cut off never runs', () => {
  it('X2: at any place, with any finish', async () => {
    const ends = fc.constantFrom('stop' as const, 'length' as const);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...replies),
        fc.nat(),
        ends,
        async (reply, cut, finished) => {
          const begun = reply.slice(0, cut % (reply.length + 1));
          const whole = outcome((await read(parsed, [reply])).chunks).calls ?? [];
          const calls = outcome((await read(parsed, [begun], finished)).chunks).calls ?? [];
          expect({ begun, calls }).toEqual({ begun, calls: whole.slice(0, calls.length) });
        },
      ),
      { numRuns: 4_000 },
    );
  });

  const json = '{"name": "now", "arguments": {}}';
  it.each([
    [`<tool_call>${json}`, '</tool_call>'],
    [`<TOOL_CALL>${json}\n`, '</TOOL_CALL>'],
    [`<tool_call>[${json}]</tool_call>\n`, '</tool_call>'],
    [`<tool_call><function=now></function>`, '</tool_call>'],
    [`<function_call id="1">${json}`, '</function_call>'],
    [`<|python_tag|>now()`, '<|eom_id|>'],
    [`<|START_ACTION|>[${json}]`, '<|END_ACTION|>'],
    [`<|tool_call_start|>[now()]`, '<|tool_call_end|>'],
    [`Action: \`\`\`json\n[${json}]\n`, '```'],
    ['<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}', '<｜tool▁call▁end｜>'],
    ['<|channel|>commentary to=functions.now<|message|>{}', '<|call|>'],
    [json, '</tool_call>'],
    [`[${json}]`, '<|eot_id|>'],
    ['[now()]', '<|im_end|>'],
  ])('X2: %j ends by itself: %j may be cut off', async (call, mark) => {
    for (let end = 0; end <= mark.length; end += 1) {
      const reply = `${call}${mark.slice(0, end)}`;
      for (const pieces of [[reply], reply.split('')]) {
        const found = outcome((await read(parsed, pieces)).chunks);
        expect({ reply, ...found }).toEqual({ reply, calls: [['now', {}]] });
      }
    }
  });

  it.each([
    ['<function=now>', '</function>'],
    ['<function=now>{}', '</function>'],
    ['<invoke name="now">', '</invoke>'],
    ['<tool_call>now<arg_key>a</arg_key><arg_value>b</arg_value>', '</tool_call>'],
    ['<tool_call>{"name": "now", "arguments": {', '</tool_call>'],
  ])('X2: %j ends with %j, so it does not run without all of it', async (call, mark) => {
    for (let end = 0; end < mark.length; end += 1) {
      const reply = `${call}${mark.slice(0, end)}`;
      for (const pieces of [[reply], reply.split('')]) {
        const {
          calls,
          refused,
          malformed,
          text: said,
        } = outcome((await read(parsed, pieces)).chunks);
        const why = refused ?? malformed;
        expect({ reply, calls, said, why }).toEqual({
          reply,
          why: 'The tool call is not complete.',
        });
      }
    }
  });

  it('X1: an error keeps the text that was held, and runs nothing', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<ModelChunk>('-a-b-#', {
        a: { type: 'text', text: 'Yes <thi' },
        b: { type: 'text', text: '\n<tool_call>{"name": "now"' },
      });
      const model = parsed({ name: 'm', keepsTime: true, stream$: () => source });
      expectObservable(model.stream$({ messages: [], tools }, lentContext())).toBe('-a---#', {
        a: { type: 'text', text: 'Yes <thi' },
      });
      expectSubscriptions(source.subscriptions).toBe('^----!');
    });
  });
});

describe('P2: thoughts stream as they arrive', () => {
  const streamed = (
    wrap: (model: Model) => Model,
    marble: string,
    values: Readonly<Record<string, ModelChunk>>,
    expected: string,
    shown: Readonly<Record<string, ModelChunk>>,
  ): void => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<ModelChunk>(marble, values);
      const model = wrap({ name: 'm', keepsTime: true, stream$: () => source });
      expectObservable(model.stream$({ messages: [], tools }, lentContext())).toBe(expected, shown);
      expectSubscriptions(source.subscriptions).toBe(`^${'-'.repeat(marble.length - 2)}!`);
    });
  };
  const [t, h] = [
    (it: string): ModelChunk => ({ type: 'text', text: it }),
    (it: string): ModelChunk => ({ type: 'thinking', text: it }),
  ];
  const end: ModelChunk = { type: 'finish', finish: 'stop' };

  it('P2: a tag that is split, and not a moment longer', () => {
    streamed(
      split,
      '-a-b-c-d-e-z|',
      { a: t('<th'), b: t('ink>a <'), c: t('b </thi'), d: t('nk>\n\n'), e: t('Yes'), z: end },
      '---b-c---e-z|',
      { b: h('a'), c: h(' <b'), e: t('Yes'), z: end },
    );
  });

  it('P2: the thought of a template is taken back at its closing tag', () => {
    streamed(
      split,
      '-a-b-------z|',
      { a: t('Hm.\n'), b: t('</think>\nYes.'), z: end },
      '-a-(bcd)---z|',
      {
        a: t('Hm.'),
        b: {
          type: 'restart',
          why: 'The text before the answer was a thought.',
          isSameRequest: true,
        },
        c: h('Hm.'),
        d: t('Yes.'),
        z: end,
      },
    );
  });

  it('P2: with `opened`, it streams as a thought', () => {
    streamed(
      (model) => splitThinking(model, { opened: true }),
      '-a-b-------z|',
      { a: t('Hm'), b: t('.</think>Yes.'), z: end },
      '-a-(bc)----z|',
      { a: h('Hm'), b: h('.'), c: t('Yes.'), z: end },
    );
  });
});

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: z.object({ city: z.string(), days: z.number().optional() }),
  run: ({ city }) => `Snow in ${city}.`,
});

describe('P1: in an agent', () => {
  it('runs the tools that the text calls, and sends thoughts back as the model takes them', async () => {
    const model = scriptedModel(
      [
        text('<think>I look.</think><tool_call>weather<arg_key>city</arg_key>'),
        text('<arg_value>Oslo</arg_value></tool_call>'),
      ],
      [text('<think>Now I know.</think>It snows.')],
    );
    const agent = createAgent({ model: parseToolCalls(model), tools: [weather] });
    const reply = await agent.call('Coat?');
    expect(textOf(reply)).toBe('It snows.');
    const [, second] = model.requests;
    expect(second?.tools?.map(({ name }) => name)).toEqual(['weather']);
    expect(second?.messages.map(({ content }) => content.map(({ type }) => type))).toEqual([
      ['text'],
      ['thinking', 'tool_call'],
      ['tool_result'],
    ]);
  });

  it('P3: repairs arguments, as it does with those of a server', async () => {
    const model = scriptedModel(
      [text(`[TOOL_CALLS]weather[ARGS]{'city': 'Oslo',}`)],
      [text('It snows.')],
    );
    const agent = createAgent({ model: parseToolCalls(model), tools: [weather] });
    expect(textOf(await agent.call('Coat?'))).toBe('It snows.');
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('Snow in Oslo.');
  });

  it('P4: says why a call could not be used', async () => {
    const model = scriptedModel(
      [text('[weather(city=where())]')],
      [text('<|START_ACTION|>[{"parameters": {}}]<|END_ACTION|>')],
      [text('It snows.')],
    );
    const agent = createAgent({
      model: parseToolCalls(model),
      tools: [weather],
      limits: { parseBackoffMs: 0 },
    });
    expect(textOf(await agent.call('Coat?'))).toBe('It snows.');
    const said = model.requests.map(({ messages }) => JSON.stringify(messages.at(-1)?.content));
    expect(said[1]).toContain('It has an argument that is not a literal at');
    expect(said[2]).toContain('The call does not name its tool.');
  });

  it('passes native tool calls through, with what the text has', async () => {
    const model = scriptedModel([text('<think>Hm.</think>So.'), toolCall('now')]);
    const { chunks } = await readFrom(parsed(model));
    expect(outcome(chunks)).toEqual({ thinking: 'Hm.', text: 'So.', calls: [['now', {}]] });
  });

  it('without tools, only thoughts are separated', async () => {
    const reply = '<think>Hm.</think>[TOOL_CALLS][{"name": "now"}]';
    const { chunks } = await read(parsed, [reply], 'stop', []);
    expect(outcome(chunks)).toEqual({ thinking: 'Hm.', text: '[TOOL_CALLS][{"name": "now"}]' });
  });

  it('with `opened`, a reply without a closing tag is the answer', async () => {
    const opened = (model: Model): Model => splitThinking(model, { opened: true });
    expect(outcome((await read(opened, ['Yes ', '& no.'])).chunks)).toEqual({ text: 'Yes & no.' });
    const cut = await read(opened, ['Hm'], 'length');
    expect(outcome(cut.chunks)).toEqual({ thinking: 'Hm' });
    const tagged = await read(opened, ['<think>Hm.</think>Yes.']);
    expect(outcome(tagged.chunks)).toEqual({ thinking: 'Hm.', text: 'Yes.' });
  });

  it('reads tags of your own', async () => {
    const wrap = (model: Model): Model => splitThinking(model, { tags: [['<plan>', '</plan>']] });
    expect(outcome((await read(wrap, ['<plan>A</plan>B'])).chunks)).toEqual({
      thinking: 'A',
      text: 'B',
    });
  });

  it('begins again after a restart of the model, and takes text back after usage, which counts once', async () => {
    const again = (...chunks: readonly ModelChunk[]): Model => ({
      name: 'm',
      stream$: () => of(...chunks),
    });
    const restarted = await readFrom(
      split(
        again(
          { type: 'text', text: '<think>A' },
          { type: 'restart', why: 'lost' },
          { type: 'text', text: '<think>B</think>C' },
          { type: 'finish', finish: 'stop' },
        ),
      ),
    );
    expect(outcome(restarted.chunks)).toEqual({ thinking: 'B', text: 'C' });
    const used = await readFrom(
      split(
        again(
          { type: 'text', text: 'A' },
          { type: 'usage', usage: { outputTokens: 1 } },
          { type: 'text', text: '\n</think>\nB' },
          { type: 'finish', finish: 'stop' },
        ),
      ),
    );
    expect(outcome(used.chunks)).toEqual({ thinking: 'A', text: 'B' });
    expect(used.chunks).toContainEqual(
      expect.objectContaining({ type: 'restart', isSameRequest: true }),
    );
  });

  const readFrom = async (model: Model): Promise<{ readonly chunks: readonly ModelChunk[] }> => {
    const chunk$ = model.stream$({ messages: [], tools }, lentContext());
    return { chunks: await lastValueFrom(chunk$.pipe(toArray())) };
  };

  it('names the wrong option', () => {
    const model = scriptedModel();
    const of = (options: object) => () => parseToolCalls(model, options);
    expect(of({ opend: true })).toThrow(
      "parseToolCalls() has no option 'opend'. Did you mean 'opened'?",
    );
    expect(of({ tags: ['<plan>'] })).toThrow("parseToolCalls(): 'tags' must be a list of pairs");
    expect(of({ dialect: {} })).toThrow('textTools() takes a dialect');
    expect(() => splitThinking(undefined as never)).toThrow(
      "splitThinking() needs 'model': a model, such as",
    );
    expect(() => splitThinking(model, { dialect: 1 } as never)).toThrow("has no option 'dialect'");
  });
});

describe('P1: with a dialect of textTools', () => {
  const families = ['gpt-oss', 'GLM', 'DeepSeek', 'Python'].flatMap(
    (family) => corpus[family] ?? [],
  );

  it.each(families)('P3: %s', async (_, reply, expected) => {
    const wrap = (model: Model): Model => parseToolCalls(model, { dialect: stepsDialect() });
    const { chunks } = await read(wrap, [reply]);
    const { calls, refused } = outcome(chunks);
    expect({ calls, refused }).toEqual({ calls: expected.calls, refused: expected.refused });
  });

  it.each([
    ['a call after the label', 'Thought: I look.\nAction: weather(city="Rome", days=2)'],
    [
      'the form of the dialect',
      'Thought: I look.\nAction: weather\nAction Input: {"city": "Rome", "days": 2}',
    ],
    [
      'a mark that textTools reads',
      '<think>I look.</think><tool_call>{"name": "weather", "arguments": {"city": "Rome", "days": 2}}</tool_call>',
    ],
    [
      'harmony around it',
      '<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>Action: weather\nAction Input: {"city": "Rome", "days": 2}',
    ],
  ])('reads %s', async (_, reply) => {
    const wrap = (model: Model): Model => parseToolCalls(model, { dialect: linesDialect() });
    const { chunks } = await read(wrap, reply.split(''));
    expect(outcome(chunks)).toEqual({
      thinking: expect.stringContaining('I look.'),
      calls: [['weather', { city: 'Rome', days: 2 }]],
    });
  });

  it('describes the tools in the prompt, and runs one action in each step', async () => {
    const model = scriptedModel(
      [text('[weather(city="Oslo"), weather(city="Rome")]')],
      [text('Action: {"final_answer": "It snows."}')],
    );
    const wrapped = parseToolCalls(model, { dialect: actionDialect() });
    const agent = createAgent({ model: wrapped, tools: [weather] });
    expect(textOf(await agent.call('Coat?'))).toBe('It snows.');
    expect(wrapped.toolsInPrompt).toBe(true);
    expect(model.requests[0]?.tools).toBeUndefined();
    expect(model.requests[0]?.system).toContain('- weather: Tells the weather.');
    const sent = JSON.stringify(model.requests[1]?.messages);
    expect(sent).toContain('Snow in Oslo.');
    expect(sent).toContain('one action per step');
    expect(sent).not.toContain('Snow in Rome.');
  });
});

describe.each([
  ['splitThinking', split],
  ['parseToolCalls', parsed],
] as const)('the contract of models: %s', (_, wrap) => {
  it.each(
    modelContract(() =>
      wrap({ name: 'm', stream$: () => of(thinking('Hm.'), text('4'), finish('stop')) }),
    ),
  )('$name', async ({ run }) => {
    await run();
  });
});
