import { describe, expect, it } from '@jest/globals';
import { from, map, type Observable, of } from 'rxjs';
import * as mini from 'zod/mini';
import {
  type Agent,
  type AgentOptions,
  contextKey,
  createAgent,
  type Model,
  type ModelChunk,
  MillraceError,
  on,
  preset,
  requireApproval,
  retry,
  selectTools,
  tool,
  toolGroup,
} from './index.js';
import { guardAnswer, guardInput, guardResults } from './layers/guards/index.js';
import { sessions } from './layers/sessions/index.js';
import { agentTool } from './layers/teams/index.js';
import { budget } from './layers/traffic/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from './testing/index.js';

const key = contextKey<string>('db');
const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });
const named = { name: 'pay', description: 'Pays.' };
const gets = tool({ name: 'pay', description: 'Pays.', run: (_, { get }) => get(key) });
const keyless = (): never => {
  throw new MillraceError('config', 'The key of the bank is missing.');
};
const takes = tool({ name: 'pay', description: 'Pays.', run: keyless });

const emitting = (...chunks: readonly object[]): Model => ({
  name: 'own',
  stream$: () => from(chunks) as Observable<ModelChunk>,
});

const wrong = (value: unknown): never => value as never;

/** Calls the tool, and answers when it has the result. */
const paying = () =>
  scriptedModel(
    ...Array.from(
      { length: 9 },
      (): ScriptedAnswer =>
        ({ messages }) =>
          messages.at(-1)?.role === 'tool'
            ? [text('Done.')]
            : [toolCall('pay', { user_prompt: 'Pay.' })],
    ),
  );

/** A wrong configuration of a program, and the part of the message that names it. */
type Case = readonly [what: string, options: Partial<AgentOptions>, names: RegExp];

const cases: readonly Case[] = [
  ['a context key without a value', { tools: [gets] }, /'pay'.*context key 'db' has no value/],
  [
    'a context key of a preset without a value',
    { tools: [preset({ ...pay, inputSchema: { properties: { a: {} } } }, { a: key })] },
    /'pay'.*context key 'db' has no value/,
  ],
  ['an error of the configuration in a tool', { tools: [takes] }, /'pay': The key of the bank/],
  [
    'an error of the configuration in an approver',
    { tools: [requireApproval(pay, ({ context }) => context.get(key) === '')] },
    /'pay'.*context key 'db' has no value/,
  ],
  [
    'an error of the configuration in a sub-agent',
    {
      tools: [
        agentTool(
          createAgent({
            name: 'pay',
            model: paying(),
            tools: [gets],
          }),
          { description: 'Pays.' },
        ),
      ],
    },
    /'pay'.*context key 'db' has no value/,
  ],
  [
    'an invalid verdict',
    {
      tools: [
        requireApproval(
          pay,
          wrong(() => 'yes'),
        ),
      ],
    },
    /approver/,
  ],
  [
    'a required tool without tools',
    { request: { toolChoice: 'required' } },
    /'toolChoice' is 'required'/,
  ],
  ['async instructions', { instructions: wrong(() => Promise.resolve('Hi.')) }, /not a Promise/],
  ['instructions that return nothing', { instructions: wrong(() => undefined) }, /not undefined/],
  ['instructions that return a number', { instructions: ['A', wrong(() => 5)] }, /not number/],
  [
    'a guard of the input without a verdict',
    { use: [guardInput(wrong(() => undefined))] },
    /guard 'guardInput'.*one verdict \(true, false or \{ allowed, reason \}\), not undefined/,
  ],
  [
    'a guard of results with a promise of text',
    {
      tools: [pay],
      use: [
        guardResults(
          wrong(() => Promise.resolve('yes')),
          { name: 'clean' },
        ),
      ],
    },
    /guard 'clean'.*one verdict.*not string/,
  ],
  [
    'a guard of answers with two verdicts',
    { tools: [pay], use: [guardAnswer(() => of(true, false))] },
    /guard 'guardAnswer'.*one verdict.*not more than one verdict/,
  ],
  [
    'a guard whose verdict has another word',
    { use: [guardInput(wrong(() => ({ approved: true })))] },
    /guard 'guardInput'.*'allowed: true'/,
  ],
  [
    'an error of the configuration in a guard of results',
    { tools: [pay], use: [guardResults(keyless)] },
    /guard 'guardResults': The key of the bank/,
  ],
  [
    'a selector of tools that returns no list',
    { tools: [pay], use: [selectTools({ select: wrong(() => 'pay') })] },
    /'select' must return a list of names, such as \['search'\]/,
  ],
  [
    'a selector that returns tools',
    { tools: [pay], use: [selectTools({ select: wrong(() => Promise.resolve([pay])) })] },
    /'select' must return a list of names/,
  ],
  ...['Pay_Bill', 'payBill', 'paybll', 'pay_biill', 'pya_bill'].map((name): Case => [
    `a timeout of the tool ${name}, misspelt`,
    {
      tools: [
        toolGroup({
          ...{ name: 'bank', description: 'Bank.', active: false },
          tools: [tool({ ...named, name: 'pay_bill', run: () => 'Paid.' })],
        }),
      ],
      limits: { timeouts: { tools: { [name]: 5 } } },
    },
    new RegExp(`'timeouts.tools' names the tool '${name}'. Write 'pay_bill'`),
  ]),
  [
    'an unknown finish',
    { model: emitting(text('Hi.'), { type: 'finish', finish: 'done' }) },
    /finish 'done'.*stop, length/,
  ],
  [
    'a finish under another name',
    { model: emitting(text('Hi.'), { type: 'finish', reason: 'stop' }) },
    /finish undefined.*stop, length/,
  ],
  [
    'an unknown type of a chunk',
    { model: emitting({ type: 'delta', text: 'Hi.' }, { type: 'finish', finish: 'stop' }) },
    /type 'delta'.*text, textStart/,
  ],
];

describe('I23: a configuration error', () => {
  it.each(cases)('fails the call, and no model reads it: %s', async (_, options, names) => {
    const model = paying();
    const agent = createAgent({ model, ...options });
    const views: readonly ((of: Agent) => Promise<unknown>)[] = [
      (it) => it.call('?'),
      (it) => sessions(it).open('s').call('?'),
    ];
    for (const view of views) {
      const failure = await view(agent).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'config', message: expect.stringMatching(names) });
    }
    expect(JSON.stringify(model.requests)).not.toMatch(/'db'|bank|configur/u);
  });

  it.each(['pay_bills', 'pay', 'get_bill', 'list', 'pay_bill2', 'a'])(
    'is not a timeout of a tool that may come later, or belongs to another agent: %s',
    async (name) => {
      const bill = tool({ ...named, name: 'pay_bill', run: () => 'Paid.' });
      const limits = { timeouts: { tools: { [name]: 5 } } };
      const agent = createAgent({ model: scriptedModel([text('Done.')]), tools: [bill], limits });
      expect((await agent.call('?')).text).toBe('Done.');
    },
  );

  it('is not a timeout whose name is like that of a tool with a timeout of its own', async () => {
    const bill = tool({ ...named, name: 'pay_bill', run: () => 'Paid.' });
    const limits = { timeouts: { tools: { pay_bill: 5, payBill: 5 } } };
    const agent = createAgent({ model: scriptedModel([text('Done.')]), tools: [bill] });
    expect((await agent.call('?', { limits })).text).toBe('Done.');
  });

  const model = scriptedModel();
  it.each<readonly [what: string, work: () => unknown, hint: RegExp]>([
    [
      'on() of a chunk',
      () =>
        on(
          wrong('reasoningChunk'),
          map((it) => it),
        ),
      /transformChunks\(/,
    ],
    [
      'on() of what is reported',
      () =>
        on(
          wrong('steered'),
          map((it) => it),
        ),
      /watch\(handler\)/,
    ],
    ['retry(2)', () => retry(wrong(2)), /retry\(model, \{ attempts: 2 \}\)/],
    ['retry(model, 2)', () => retry(model, wrong(2)), /retry\(model, \{ attempts: 2 \}\)/],
    [
      'a layer that is not called',
      () => createAgent({ model, use: [wrong(budget)] }),
      /budget\(…\)/,
    ],
    ['a layer alone', () => createAgent({ model, use: wrong(budget) }), /list of layers/],
    [
      'a schema of zod/mini',
      () => tool({ ...named, input: wrong(mini.object({})), run: () => 1 }),
      /zod\/mini: import \{ z \} from 'zod', or pass jsonSchema\(z\.toJSONSchema\(schema\)\)/,
    ],
    [
      'an invalid key of a tool',
      () => tool({ ...named, requires: wrong(['db']), run: () => 1 }),
      /'requires' must be a list of context keys/,
    ],
    [
      'metadata that is no string',
      () => createAgent({ model }).call$('?', { metadata: wrong({ a: 1 }) }),
      /'metadata' must be an object of strings/,
    ],
    [
      'an invalid stop sequence',
      () => createAgent({ model, request: { stopSequences: wrong([1]) } }),
      /'stopSequences' must be a list of strings/,
    ],
  ])('names the fix: %s', (_, work, hint) => {
    expect(work).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringMatching(hint) }),
    );
  });

  it.each<readonly [what: string, input: unknown, hint: RegExp]>([
    [
      'a system message',
      [{ role: 'system', content: 'Be brief.' }, 'Hi.'],
      /'instructions' of the agent/,
    ],
    [
      'a message of the AI SDK',
      { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] },
      /AI SDK.*inputOfUiMessages\(body\)/,
    ],
    [
      'one in a list',
      [
        { role: 'user', parts: [] as unknown[], id: '1' },
        { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] },
      ],
      /AI SDK.*inputOfUiMessages\(body\)/,
    ],
  ])('names the fix of an input: %s', async (_, input, hint) => {
    await expect(createAgent({ model }).call(wrong(input))).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringMatching(hint),
    });
  });
});
